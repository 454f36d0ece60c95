#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "common/error.hpp"
#include "common/threads/threads.hpp"
#include "experiments/storage/block_load.hpp"
#include "experiments/storage/run_blocks.hpp"
#include "kernels/storage/content.hpp"
#include "libraries/storage/files.hpp"

namespace feedrate::storage {
namespace {

/// Writes the blocks of a pattern through the engine, or reads and checks them.
/// `writes`: number of writes that made the contents to be read.
void move_through_engine(const Job& job, Operation operation, const Pattern& pattern, std::uint64_t writes = 0) {
  const Options& options = job.options;
  if (pattern.size() == 0) return;
  BlockLoad load(engine_of(options).make({{.files = job.files->files(),
                                           .device = *job.device,
                                           .operation = operation,
                                           .direct = options.is_direct(),
                                           .block = options.block,
                                           .depth = options.depth},
                                          job.own}),
                 *job.device, *job.files, pattern,
                 {operation, options.block, options.depth, options.shift, job.version, true, writes});
  offer(load, {.seconds = 1e9,
               .window = load.window(),
               .watchdog_seconds = job.settings.watchdog_seconds,
               .interrupted = [&] { return interrupted() || load.exhausted(); }});
}

}  // namespace

void fill_devices(const Job& job) {
  const std::uint64_t blocks = job.options.files * job.options.blocks_per_file();
  move_through_engine(job, Operation::write, Pattern("sequential", blocks, 0, 1, 0));
}

void verify_written(const Job& job, const std::vector<Seen>& seen) {
  const Options& options = job.options;
  if (engine_of(options).own_storage) {
    for (unsigned t = 0; t < options.threads; ++t) {
      const Pattern pattern = job.pattern(t);
      const std::uint64_t writes = seen[t].requested / options.block;
      // Blocks that were written once more than the others come first.
      move_through_engine(job, Operation::read, pattern.first(std::min(writes, pattern.size())), writes);
    }
    return;
  }
  job.files->make(Residency::cold);
  std::vector<Descriptor> open;
  for (const File& file : job.files->files()) open.emplace_back(file.path, O_RDONLY);
  const std::uint64_t per_file = options.blocks_per_file();
  for (unsigned t = 0; t < options.threads; ++t) {
    const Pattern pattern = job.pattern(t);
    const std::uint64_t writes = seen[t].requested / options.block;
    const std::uint64_t written = std::min(pattern.size(), writes);
    const BlockShape blocks{.operation = Operation::read, .version = job.version, .writes = writes};
    in_parallel(written, [&](std::size_t n) {
      std::vector<std::uint64_t> words(options.block / 8);
      auto* const data = reinterpret_cast<std::byte*>(words.data());
      const std::uint64_t block = pattern.at(n);
      const auto file = static_cast<unsigned>(block / per_file);
      const Request request{.offset = block % per_file * options.block + options.shift, .bytes = options.block};
      const Completion done = move_block(Operation::read, open[file].get(), data, request);
      if (done.error != 0) {
        throw Failure(fmt::format("read of {} written bytes at offset {} of {}: {}", request.bytes, request.offset,
                                  job.files->files()[file].path, std::strerror(done.error)));
      }
      std::uint64_t first = ~std::uint64_t{0};
      const std::uint64_t wrong =
          done.bytes != request.bytes
              ? words.size()
              : count_wrong(data, request.bytes, job.files->key(file, blocks.version_of(n, pattern.size())),
                            request.offset, first);
      if (wrong != 0) {
        throw Failure(fmt::format("{} of {} words written at offset {} of {} are wrong", wrong, words.size(),
                                  request.offset, job.files->files()[file].path));
      }
    });
  }
}

}  // namespace feedrate::storage
