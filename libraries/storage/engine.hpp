#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "common/device/device.hpp"

/// Moving blocks between files and device memory.
namespace feedrate::storage {

enum class Operation { read, write };

/// A file or a block device.
struct File {
  std::string path;
  std::uint64_t bytes = 0;
};

/// A part of a block that has its own place in device memory.
struct Piece {
  std::size_t at = 0;  ///< offset in the block
  std::size_t bytes = 0;
  std::byte* device = nullptr;
};

/// A block to move between a file and device memory.
struct Request {
  std::uint64_t id = 0;  ///< returned with the completion
  unsigned file = 0;     ///< index into EngineConfig::files
  std::uint64_t offset = 0;
  std::size_t bytes = 0;
  std::byte* device = nullptr;
  /// If not empty, only these parts of the block are moved, and `device` is not used. They must stay valid until the
  /// request has ended. Only the engines in this library support them.
  std::span<const Piece> pieces = {};
};

/// The end of a request. If `error` is 0 and `bytes` is the requested size, the block has arrived: in device
/// memory, or in the file as far as write() guarantees it.
struct Completion {
  std::uint64_t id = 0;
  int error = 0;          ///< an errno value
  std::size_t bytes = 0;  ///< bytes moved; fewer than requested: the file ended there
};

struct EngineConfig {
  std::span<const File> files;
  Device& device;
  Operation operation = Operation::read;
  bool direct = false;    ///< bypasses the page cache (O_DIRECT)
  std::size_t block = 0;  ///< size of the largest request
  std::size_t depth = 1;  ///< maximum number of requests in flight
  /// Small copies of one group are made by a kernel that reads the pinned memory. Only some engines support it.
  bool scatters = false;
};

/// Moves blocks. An engine is constructed and used by one thread. Requests end in any order. Calls throw Failure if the
/// device reports an error or the engine itself fails; a file's errors are part of completions.
class Engine {
 public:
  virtual ~Engine() = default;
  /// Starts a request. Returns false if `depth` requests are in flight. A synchronous engine returns when the request
  /// has ended; the others return at once.
  virtual bool submit(const Request&) = 0;
  /// Submits requests that the engine has held back in order to submit several with one call.
  virtual void flush() {}
  /// Writes the completions of requests that have ended to `ended`; returns their number. Does not wait.
  virtual std::size_t poll(std::span<Completion> ended) = 0;
  /// Closes the files and opens them again, as in a program that reads many files with one engine. Returns false if the
  /// engine must be constructed again instead. Call it only while no request is in flight.
  virtual bool reopen() { return false; }
  /// The path of the bytes, as far as the engine knows it for certain: "mode" and other keys. For rows. "injected" is a
  /// fault that the engine causes on purpose.
  virtual std::map<std::string, std::string> path() const { return {}; }
};

}  // namespace feedrate::storage
