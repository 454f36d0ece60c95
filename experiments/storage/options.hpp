#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "common/axes.hpp"
#include "common/load_shape.hpp"
#include "experiments/storage/fio.hpp"
#include "variants/storage/engine.hpp"

namespace feedrate::storage {

/// Values of the axes that all engines share.
struct Options {
  std::string engine = "pread_pinned", device = "auto", access = "sequential", operation = "read", direct = "no",
              residency = "warm", lifetime = "run", folder = "/tmp", target = "none", overwrite = "no";
  std::size_t block = std::size_t{1} << 20;
  std::size_t depth = 16;
  std::size_t shift = 0;
  unsigned threads = 1, files = 1;
  std::uint64_t size = std::uint64_t{256} << 20;

  bool reads() const { return operation == "read"; }
  bool is_direct() const { return direct == "yes"; }
  bool on_devices() const { return target != "none"; }
  /// Number of blocks per file.
  std::uint64_t blocks_per_file() const { return (size - shift) / block; }
};

const Axes<Options>& shared_axes();

const EngineEntry& engine_of(const Options&);
Operation operation_of(const Options&);
/// `own`: values that include those of the engine's own axes.
EnginePoint point_of(const Options&, const Values& own);
FioJob job_of(const Options&);
/// The devices that `--target` names, separated by commas.
std::vector<std::string> targets_of(const Options&);
/// Why a point cannot be measured; empty if it can.
std::string why_impossible(const Options&, const LoadShape&, const Values& own);

}  // namespace feedrate::storage
