#include "libraries/storage/uring_engine.hpp"
#include "variants/storage/engine.hpp"

namespace feedrate::storage {
namespace {

const Axes<UringOptions>& own_axes_of_io_uring() {
  static const auto kAxes =
      Axes<UringOptions>()
          .word("uring", &UringOptions::wait, {"interrupt", "sqpoll", "iopoll"},
                "interrupt: the submitting thread runs the completions; sqpoll: a kernel thread submits; iopoll: the "
                "device's poll queues are polled (needs --direct yes)")
          .word("punt", &UringOptions::punt, {"auto", "yes", "no"},
                "let the kernel's workers run each request (IOSQE_ASYNC), so that cached blocks are copied on several "
                "cores; auto = without --direct, for blocks of at least 64 KiB")
          .number("streams", &UringOptions::streams, {1, 32}, kStreamsHelp);
  return kAxes;
}

const EngineRegistration registered(
    "io_uring",
    {.description = "io_uring with registered files and pinned memory; one group of copies per poll",
     .axes = own_axes_of_io_uring().list(),
     .unavailable = Uring::unavailable,
     .why_unsupported = [](const EnginePoint& point) -> std::string {
       const bool polls = own_axes_of_io_uring().of(point.own).wait == "iopoll";
       return polls && !point.direct ? "--uring iopoll needs --direct yes" : "";
     },
     .threads =
         [](const EnginePoint& point) { return own_axes_of_io_uring().of(point.own).wait == "sqpoll" ? 1u : 0u; },
     .make = [](const PointConfig& config) -> std::unique_ptr<Engine> {
       return std::make_unique<UringEngine>(config, own_axes_of_io_uring().of(config.own));
     }});

}  // namespace
}  // namespace feedrate::storage
