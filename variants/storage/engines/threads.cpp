#include "libraries/storage/reader_threads.hpp"

#include <algorithm>

#include "variants/storage/engine.hpp"

namespace feedrate::storage {
namespace {

const Axes<ReaderThreadsOptions>& own_axes_of_threads() {
  static const auto kAxes =
      Axes<ReaderThreadsOptions>()
          .number("readers", &ReaderThreadsOptions::readers, {1, 128}, "threads that read or write")
          .number("reader-slots", &ReaderThreadsOptions::slots, {1, 16},
                  "blocks of pinned memory per reader: some are read while others are copied")
          .number("streams", &ReaderThreadsOptions::streams, {1, 32}, kStreamsHelp);
  return kAxes;
}

const EngineRegistration registered(
    "threads", {.description = "threads that read into slots of pinned memory, from which blocks are copied in groups",
                .axes = own_axes_of_threads().list(),
                .threads =
                    [](const EnginePoint& point) {
                      const unsigned readers = own_axes_of_threads().of(point.own).readers;
                      return static_cast<unsigned>(std::min<std::size_t>(readers, point.depth));
                    },
                .make = [](const PointConfig& config) -> std::unique_ptr<Engine> {
                  return std::make_unique<ReaderThreads>(config, own_axes_of_threads().of(config.own));
                }});

}  // namespace
}  // namespace feedrate::storage
