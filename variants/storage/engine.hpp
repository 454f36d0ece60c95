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
#include "common/registry.hpp"
#include "libraries/storage/engine.hpp"

/// Ways to move blocks between files and device memory, as members of an axis.
namespace feedrate::storage {

/// What an engine needs, with the values of its own axes.
struct PointConfig : EngineConfig {
  Values own = {};
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
  std::function<std::unique_ptr<Engine>(const PointConfig&)> make;
  /// Whether device threads request the blocks of a point by themselves; then `access` replaces `make`.
  std::function<bool(const EnginePoint&)> accessed_by_device = [](const EnginePoint&) { return false; };
  /// Throws Failure that names file and offset if a block cannot be read or is wrong.
  std::function<DeviceAccessResult(const PointConfig&, const DeviceAccesses&)> access = {};
};
/// Help of the axis `streams` that engines with copies share.
inline constexpr const char* kStreamsHelp = "groups of copies that run at once, each on a stream";
using Engines = Registry<EngineEntry>;
using EngineRegistration = Registration<EngineEntry>;

/// A `make` that constructs T from its config.
template <class T>
std::unique_ptr<Engine> make_engine(const PointConfig& config) {
  return std::make_unique<T>(config);
}

}  // namespace feedrate::storage
