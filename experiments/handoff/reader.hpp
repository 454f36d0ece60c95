#pragma once
#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libraries/tensors/socket.hpp"
#include "variants/handoff/handoff.hpp"

/// The process that receives tensors: the same executable, started with the hidden subcommand `helper`.
/// Both ends communicate over a packet socket: a request, then its reply.
namespace feedrate::handoff {

enum class Op : std::uint32_t {
  begin,  ///< switches to another way or setting; followed by the way's name, a zero byte, and the setting as JSON
  take,   ///< reads every tensor once
  close,  ///< releases all tensors
};

/// A request from the exporter. If `fresh`, it is followed by the length (std::uint32_t), a flag for a descriptor
/// (std::uint32_t) and the bytes of a ticket for each tensor.
struct Request {
  Op op = Op::take;
  std::uint32_t fresh = 0;  ///< 1 if the tensors must be opened first
  std::uint32_t tensors = 0;
};

/// Reply of one reader to `take`. Times are now_ns(), from a clock that all processes share.
struct Answer {
  std::uint64_t failed = 0;      ///< if not 0, the reason follows the reply
  std::uint64_t started_ns = 0;  ///< when the first kernel could start: launched, with all earlier work done
  std::uint64_t read_ns = 0;     ///< when all kernels had ended
};
/// Result of a tensor's kernel; one per tensor follows the reply.
struct Read {
  std::uint64_t id = 0, sum = 0;
};

/// Number of blocks of the exporter's and the readers' kernels: enough to keep memory loads in flight on every SM.
inline unsigned blocks_for(Device& device) { return 8 * std::max(1u, device.info().processors); }

/// Main loop of a reader: serves requests until the socket is closed. `socket` is a descriptor.
void read_tensors(int socket);

/// A reader in a separate process, which ends with this object. One process serves many cells, since creating a GPU
/// context takes a third of a second.
class ReaderProcess {
 public:
  /// Throws Failure if the process cannot be started.
  ReaderProcess();
  ReaderProcess(const ReaderProcess&) = delete;
  ReaderProcess& operator=(const ReaderProcess&) = delete;
  ~ReaderProcess();

  /// Releases the previous way and setting and switches to these.
  void begin(const std::string& way, const Setting&);
  void ask(const Request&, const std::vector<Ticket>&);
  /// Waits for the reply; `read` receives one result per tensor (none for `close`). Throws Failure with the reader's
  /// message if the reader fails.
  Answer answer(std::vector<Read>& read);

 private:
  void send(const Request&, std::string_view more, std::span<const int> descriptors);

  tensors::Descriptor socket_;
  int process_ = -1;
  tensors::Packet packet_;
};

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Setting, device, bytes, exporter_gpu, importer_gpu, copies_to_peer, address, shared,
                                   prefix)

}  // namespace feedrate::handoff
