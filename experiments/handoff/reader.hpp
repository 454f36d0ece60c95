#pragma once
#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "variants/handoff/handoff.hpp"
#include "libraries/tensors/socket.hpp"

/// The process that takes tensors: the executable itself, started again with the hidden subcommand `helper`.
/// Both ends speak over a socket of packets: a request, then its answer.
namespace feedrate::handoff {

enum class Op : std::uint32_t {
  begin,  ///< serves another way or setting from now on: behind it stand the way's name, a zero, and the setting's JSON
  take,   ///< reads all tensors, once each
  close,  ///< lets all tensors go
};

/// What the giver asks. Behind it, where `fresh`, a ticket's length (std::uint32_t) and bytes for each tensor.
struct Request {
  Op op = Op::take;
  std::uint32_t fresh = 0;  ///< the tensors must be opened first
  std::uint32_t tensors = 0;
};

/// What one reader answers to `take`. Times are now_ns(), of a clock that all processes share.
struct Answer {
  std::uint64_t failed = 0;      ///< not 0: why stands behind it
  std::uint64_t started_ns = 0;  ///< the first tensor's kernel could start: it was launched, all before it had ended
  std::uint64_t read_ns = 0;     ///< all kernels had ended
};
/// Behind an answer, of each tensor: what its kernel read.
struct Read {
  std::uint64_t id = 0, sum = 0;
};

/// Blocks of the giver's and the readers' kernels: enough that loads from memory are always under way on every SM.
inline unsigned blocks_for(Device& device) { return 8 * std::max(1u, device.info().processors); }

/// A reader's whole life: serves requests until the socket ends. `socket` is a descriptor.
void read_tensors(int socket);

/// A reader in a process of its own, until this ends. One process serves many cells, since a GPU's context takes it a
/// third of a second.
class ReaderProcess {
 public:
  /// Throws Failure where it can't be started.
  ReaderProcess();
  ReaderProcess(const ReaderProcess&) = delete;
  ReaderProcess& operator=(const ReaderProcess&) = delete;
  ~ReaderProcess();

  /// Lets go of what it had, and serves this from now on.
  void begin(const std::string& way, const Setting&);
  void ask(const Request&, const std::vector<Ticket>&);
  /// Waits for the answer, with what each tensor's kernel read; none of `close`. Throws Failure with the reader's words
  /// where it fails.
  Answer answer(std::vector<Read>& read);

 private:
  void send(const Request&, std::string_view more, std::span<const int> descriptors);

  tensors::Descriptor socket_;
  int process_ = -1;
  tensors::Packet packet_;
};

}  // namespace feedrate::handoff
