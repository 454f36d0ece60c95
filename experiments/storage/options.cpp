#include "experiments/storage/options.hpp"

#include <fmt/format.h>

#include <limits>
#include <sstream>

#include "experiments/harness/load/open_load.hpp"

namespace feedrate::storage {

const Axes<Options>& shared_axes() {
  static const auto kAxes =
      Axes<Options>()
          .word(
              "engine", &Options::engine, [] { return Engines::instance().list(); },
              "moves blocks between files and "
              "device memory")
          .word("device", &Options::device, {"auto", "cpu", "cuda"},
                "device that receives and checks the blocks; auto = cuda if there is a GPU")
          .number("block", &Options::block, {4096, 16 << 20, 4096, "block_bytes"}, "bytes per request")
          .number("depth", &Options::depth, {1, 1024}, "requests in flight per thread")
          .number("threads", &Options::threads, {1, 64}, "threads, each with its own engine and part of the blocks")
          .word("access", &Options::access, {"sequential", "random", "strided"},
                "order of the blocks: consecutive, a permutation, or every 16th")
          .word("operation", &Options::operation, {"read", "write"}, "direction")
          .word("direct", &Options::direct, {"no", "yes"}, "bypass the page cache (O_DIRECT)")
          .word("residency", &Options::residency, {"warm", "cold"},
                "whether the page cache holds the files at the start; cold blocks are read only once")
          .word("lifetime", &Options::lifetime, {"run", "pass"},
                "run: files are opened once per repetition; pass: each pass opens the files, registers them if the "
                "engine does so, reads all blocks and closes the files, and all of this is timed (needs --operation "
                "read and --arrivals closed)")
          .number("files", &Options::files, {1, 1024}, "number of files")
          .number("size", &Options::size, {4096, std::uint64_t{1} << 40, 4096, "file_bytes"}, "bytes per file")
          .number("shift", &Options::shift, {0, 4095},
                  "bytes by which every block is shifted; O_DIRECT does not allow most values, so the engine reads "
                  "such blocks through the page cache")
          .raw("folder", &Options::folder, "folder in which the files are created; they are removed at the end")
          .raw("target", &Options::target,
               "block devices to use instead of files, separated by commas, whose contents are lost; none = files")
          .word("overwrite", &Options::overwrite, {"no", "yes"}, "yes: the contents of --target may be overwritten");
  return kAxes;
}

const EngineEntry& engine_of(const Options& options) { return Engines::instance().get("--engine", options.engine); }

Operation operation_of(const Options& options) { return options.reads() ? Operation::read : Operation::write; }

EnginePoint point_of(const Options& options, const Values& own) {
  return {operation_of(options), options.is_direct(), options.block, options.depth, options.device, own,
          options.threads};
}

FioJob job_of(const Options& options) {
  return {options.block, options.depth, options.threads, options.access == "sequential", options.reads()};
}

std::vector<std::string> targets_of(const Options& options) {
  std::vector<std::string> found;
  if (!options.on_devices()) return found;
  std::istringstream list(options.target);
  for (std::string name; std::getline(list, name, ',');) found.push_back(name);
  return found;
}

std::string why_impossible(const Options& options, const LoadShape& shape, const Values& own) {
  const EngineEntry& engine = engine_of(options);
  if (auto reason = engine.unavailable(); !reason.empty()) return reason;
  const EnginePoint point = point_of(options, own);
  if (engine.why_unsupported) {
    if (auto reason = engine.why_unsupported(point); !reason.empty()) return reason;
  }
  if (auto reason = why_invalid_shape(shape); !reason.empty()) return reason;
  if (engine.own_storage && !options.on_devices()) return "engine " + options.engine + " needs --target";
  if (options.on_devices() && options.overwrite != "yes") {
    return "--target needs --overwrite yes, because the contents of the devices are lost";
  }
  if (options.size % options.block != 0) {
    return fmt::format("--size {} must be a multiple of --block {}", options.size, options.block);
  }
  const std::uint64_t blocks = options.blocks_per_file() * options.files;
  if (blocks > std::numeric_limits<std::uint32_t>::max()) {
    return fmt::format("--size {}, --files {} and --block {} make {} blocks, more than the 2^32 allowed", options.size,
                       options.files, options.block, blocks);
  }
  if (blocks < options.threads) {
    return fmt::format("--size {}, --files {} and --block {} make {} blocks, too few for --threads {}", options.size,
                       options.files, options.block, blocks, options.threads);
  }
  if (engine.accessed_by_device(point) && (options.lifetime == "pass" || is_open(shape))) {
    return "blocks that the GPU requests need --lifetime run and --arrivals closed";
  }
  if (options.lifetime == "pass" && (is_open(shape) || !options.reads())) {
    return "lifetime pass needs --operation read and --arrivals closed";
  }
  if (options.lifetime == "pass" && options.residency == "cold" && !options.is_direct()) {
    return "lifetime pass needs --residency warm or --direct yes, because the first pass leaves the files in the cache";
  }
  if (!options.reads() && options.residency == "cold" && !options.is_direct()) {
    return "residency cold needs --operation read or --direct yes";
  }
  const std::size_t memory = 2 * options.depth * options.threads * options.block;
  if (memory > kMaxMemory) {
    return fmt::format("2 × depth × threads × block is {} bytes, more than the {} GiB allowed", memory,
                       kMaxMemory >> 30);
  }
  return "";
}

}  // namespace feedrate::storage
