#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/axes.hpp"
#include "common/device/device.hpp"
#include "common/registry.hpp"

/// Ways to move blocks between files and device memory.
namespace feedrate::storage {

enum class Operation { read, write };

/// A file or a block device.
struct File {
  std::string path;
  std::uint64_t bytes = 0;
};

/// A block to move between a file and device memory.
struct Request {
  std::uint64_t id = 0;  ///< returned with the completion
  unsigned file = 0;     ///< index into EngineConfig::files
  std::uint64_t offset = 0;
  std::size_t bytes = 0;
  std::byte* device = nullptr;
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
  Values own = {};        ///< values of the engine's own axes
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

/// Blocks that device threads read and check by themselves.
struct DeviceAccesses {
  std::span<const std::uint32_t> order;  ///< numbers of blocks, across the files laid end to end; repeats
  std::uint64_t blocks_per_file = 0, shift = 0;
  std::span<const std::uint64_t> keys;  ///< the key of each file's contents (kernels/storage/content.hpp)
  bool once = false;                    ///< each block is accessed at most once
  double seconds = 0;
  std::function<bool()> stop = [] { return false; };
  /// Called with the message of a failure before the engine releases its resources, which may take long.
  std::function<void(const std::string&)> failing = [](const std::string&) {};
};

/// Accesses whose blocks were correct.
struct DeviceAccessResult {
  double seconds = 0;  ///< by the device's clock
  std::uint64_t ended = 0, hits = 0, loads = 0;
  /// Times in ns from the lookup of a block that was read from storage until it was checked, each with its number.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> latency = {};
  std::map<std::string, std::string> path = {};
};

/// Most bytes of a point's blocks in device memory, and in pinned memory.
inline constexpr std::size_t kMaxMemory = std::size_t{16} << 30;

/// The properties of a point that decide whether an engine can measure it.
struct EnginePoint {
  Operation operation = Operation::read;
  bool direct = false;
  std::size_t block = 0;
  std::size_t depth = 1;
  std::string device = "cpu";
  Values own = {};
  unsigned threads = 1;  ///< each has its own engine
};

struct EngineEntry {
  std::string description;
  std::vector<Axis> axes = {};  ///< the engine's own axes
  /// Why the engine cannot be used on this machine; empty if it can.
  std::function<std::string()> unavailable = [] { return std::string(); };
  /// Why it cannot measure a point; empty if it can.
  std::function<std::string(const EnginePoint&)> why_unsupported = {};
  bool own_storage = false;  ///< the engine drives devices itself; File::path is what `--target` gives
  /// Number of threads that it starts, in addition to the one that uses it.
  std::function<unsigned(const EnginePoint&)> threads = [](const EnginePoint&) { return 0u; };
  std::function<std::unique_ptr<Engine>(const EngineConfig&)> make;
  /// Whether device threads request the blocks of a point by themselves; then `access` replaces `make`.
  std::function<bool(const EnginePoint&)> accessed_by_device = [](const EnginePoint&) { return false; };
  /// Throws Failure that names file and offset if a block cannot be read or is wrong.
  std::function<DeviceAccessResult(const EngineConfig&, const DeviceAccesses&)> access = {};
};
using Engines = Registry<EngineEntry>;
using EngineRegistration = Registration<EngineEntry>;

/// A `make` that constructs T from its config.
template <class T>
std::unique_ptr<Engine> make_engine(const EngineConfig& config) {
  return std::make_unique<T>(config);
}

}  // namespace feedrate::storage
