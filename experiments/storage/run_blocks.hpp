#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/error.hpp"
#include "common/load_shape.hpp"
#include "experiments/harness/load/offer.hpp"
#include "experiments/harness/measure/histogram.hpp"
#include "experiments/harness/measure/session.hpp"
#include "experiments/storage/file_set.hpp"
#include "experiments/storage/options.hpp"
#include "experiments/storage/pattern.hpp"

namespace feedrate::storage {

/// What all threads of a repetition do. A thread that cannot be stopped keeps what it uses.
struct Job {
  std::shared_ptr<Device> device;
  RunSettings settings;
  Options options;
  LoadShape shape;
  Values own;
  std::shared_ptr<const FileSet> files;
  std::uint64_t version = 0;  ///< version of the contents that are read or written
  unsigned repetition = 0;

  Pattern pattern(unsigned thread) const {
    return {options.access, options.files * options.blocks_per_file(), thread, options.threads,
            settings.seed + repetition};
  }
};

/// Results of one thread.
struct Seen {
  LoadResult load;
  Histogram passes;                               ///< ns from opening the files until they are closed
  std::uint64_t requested = 0;                    ///< bytes of submitted requests
  double pass_seconds = 0;                        ///< duration of all passes
  std::uint64_t cache_hits = 0, cache_loads = 0;  ///< of a page cache in device memory
  std::map<std::string, std::string> path = {};
};

/// A thread of a job neither ends nor continues, because a system call or a driver does not return.
struct Hung : Failure {
  using Failure::Failure;
};

/// Runs the load on all threads and returns their results. Rethrows the first exception. Throws Hung if a thread has
/// not continued for three times `watchdog_seconds`; such threads are left to themselves and end when they can.
std::vector<Seen> run_blocks(std::shared_ptr<const Job>);

/// Reads on the host what was written, without the engine unless only the engine can access the devices. Throws Failure
/// naming file and offset if a word is wrong.
void verify_written(const Job&, const std::vector<Seen>&);

/// Writes all blocks through the engine, for devices that only the engine can access.
void fill_devices(const Job&);

}  // namespace feedrate::storage
