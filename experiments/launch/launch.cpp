#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <future>

#include "common/clock.hpp"
#include "common/error.hpp"
#include "experiments/harness/machine/machine_monitor.hpp"
#include "experiments/harness/measure/session.hpp"
#include "experiments/launch/launcher.hpp"

/// The `launch` experiment: the cost of launching an empty kernel (results: experiments/launch/README.md).
namespace feedrate::launch {
namespace {

struct Options {
  std::string form = "plain";
  std::string device = "auto";
  unsigned kernels = 1, streams = 1, threads = 1, block = 32;
};
const Axes<Options>& own_axes() {
  static const auto kAxes =
      Axes<Options>()
          .word("form", &Options::form, {"plain", "graph", "pdl"},
                "plain launches, one graph of a unit's kernels, or programmatic dependent launch")
          .word("device", &Options::device, {"auto", "cpu", "cuda"},
                "device that runs the kernels; auto = cuda if there is a GPU")
          .number("kernels", &Options::kernels, {1, 4096},
                  "kernels per unit, one after another on one stream; a round trip is timed per unit")
          .number("streams", &Options::streams, {1, 128}, "streams per thread; units use them in turn")
          .number("threads", &Options::threads, {1, 64}, "launching threads, each with its own streams")
          .number("block", &Options::block, {32, 1024, 32}, "GPU threads per kernel, in one block");
  return kAxes;
}

Shape shape_of(const Options& options) {
  return {options.form, options.kernels, options.streams, options.block, false};
}

/// Results of one launching thread.
struct Seen {
  Histogram call, round_trip;
  std::uint64_t kernels = 0;
};

/// Runs `body(launcher, index)` in the launching threads, each with its own launcher, once all launchers are ready.
/// Rethrows the first thread's exception.
template <class Body>
void run_threads(const Options& options, Device& device, const Body& body) {
  std::barrier ready(options.threads);
  std::atomic<bool> failed{false};
  std::vector<std::future<void>> threads;
  for (unsigned t = 0; t < options.threads; ++t) {
    threads.push_back(std::async(std::launch::async, [&, t] {
      std::unique_ptr<Launcher> launcher;
      try {
        device.use_in_this_thread();
        launcher = make_launcher(shape_of(options), device);
        launcher->launch();  // the first launch loads the module
        launcher->wait();
      } catch (...) {
        failed = true;
        ready.arrive_and_drop();
        throw;
      }
      ready.arrive_and_wait();
      if (!failed) body(*launcher, t);
    }));
  }
  for (auto& thread : threads) thread.wait();
  for (auto& thread : threads) thread.get();
}

class Launch final : public Experiment {
 public:
  explicit Launch(Session& session) : session_(session) {}

  Resolution resolve(const Values& values) override {
    Options options = own_axes().of(values);
    options.device = session_.device().kind();
    Resolution made;
    if (options.device == "cpu") {
      options.block = 0;
      made.unused["block"] = "with --device cuda, and a GPU";
    }
    own_axes().put(options, made.values);
    made.impossible = why_unsupported(shape_of(options), session_.device());
    return made;
  }

  Measurement measure(const Resolution& cell, const Repetition&) override {
    const Options options = own_axes().of(cell.values);
    Measurement measured;
    measured.host_threads = options.threads;
    if (const std::string wrong = verify(options, measured.details); !wrong.empty()) {
      measured.judge(Status::failed, Cause::wrong_results, wrong);
      return measured;
    }
    const RunSettings& settings = session_.settings();
    std::vector<Seen> seen(options.threads);
    std::atomic<std::uint64_t> first{0};
    MachineMonitor monitor(session_.gpu());
    const Captured captured(session_);
    // Half of the time is for round trips, half for launches at the highest rate.
    run_threads(options, session_.device(),
                [&](Launcher& launcher, unsigned t) { round_trips(launcher, options, settings.seconds / 2, seen[t]); });
    std::atomic<std::uint64_t> busy_ns{0};
    run_threads(options, session_.device(), [&](Launcher& launcher, unsigned t) {
      const std::uint64_t ns = stream_of_launches(launcher, options, settings.seconds / 2, seen[t]);
      for (std::uint64_t known = busy_ns.load(); known < ns && !busy_ns.compare_exchange_weak(known, ns);) {
      }
    });
    measured.machine = monitor.stop();
    Histogram call, round_trip;
    std::uint64_t kernels = 0;
    for (const Seen& each : seen) {
      call.merge(each.call);
      round_trip.merge(each.round_trip);
      kernels += each.kernels;
    }
    if (kernels == 0) {
      measured.judge(Status::invalid, Cause::no_results, "no kernel ended within the timed phase");
      return measured;
    }
    const double rate = static_cast<double>(kernels) / (static_cast<double>(busy_ns.load()) / 1e9);
    measured.numbers["kernels_per_second"] = rate;
    measured.histograms["call_ns"] = {call, 1};
    measured.histograms["round_trip_ns"] = {round_trip, 1};
    add_bounds(options, measured);
    return measured;
  }

 private:
  /// Verifies that every launched kernel runs, with the same calls and a kernel that counts its runs. Returns the
  /// error, or an empty string.
  std::string verify(const Options& options, Json& details) {
    constexpr unsigned kUnits = 10;
    Shape shape = shape_of(options);
    shape.counted = true;
    const auto launcher = make_launcher(shape, session_.device());
    for (unsigned i = 0; i < kUnits; ++i) launcher->launch();
    launcher->wait();
    const std::uint64_t launched = kUnits * options.kernels, ran = launcher->counted();
    details["verified"] = {{"launched", launched}, {"ran", ran}};
    return launched == ran ? "" : fmt::format("{} of {} launched kernels ran", ran, launched);
  }

  static void round_trips(Launcher& launcher, const Options& options, double seconds, Seen& seen) {
    const std::uint64_t end = now_ns() + static_cast<std::uint64_t>(seconds * 1e9);
    for (std::uint64_t begin = now_ns(); begin < end && !interrupted(); begin = now_ns()) {
      launcher.launch();
      const std::uint64_t launched = now_ns();
      launcher.wait();
      seen.call.record((launched - begin) / options.kernels);
      seen.round_trip.record(now_ns() - begin);
    }
  }

  /// Returns the nanoseconds until all launches have completed.
  static std::uint64_t stream_of_launches(Launcher& launcher, const Options& options, double seconds, Seen& seen) {
    constexpr unsigned kUnits = 16;  // units between two readings of the clock
    const std::uint64_t begin = now_ns(), end = begin + static_cast<std::uint64_t>(seconds * 1e9);
    while (now_ns() < end && !interrupted()) {
      for (unsigned i = 0; i < kUnits; ++i) launcher.launch();
      seen.kernels += std::uint64_t{kUnits} * options.kernels;
      if (seen.kernels % (std::uint64_t{kUnits} * kMaxQueued) < std::uint64_t{kUnits} * options.kernels)
        launcher.wait();
    }
    launcher.wait();
    return now_ns() - begin;
  }

  static void add_bounds(const Options& options, Measurement& measured) {
    if (options.kernels != 1 || options.threads != 1 || options.streams != 1) return;
    const bool graph = options.form == "graph";
    measured.bounds_of_figures.emplace_back("round_trip_ns",
                                            floor_of(graph ? "graph_launch_sync_ns" : "launch_sync_ns"));
    if (options.form == "plain")
      measured.bounds_of_figures.emplace_back("kernels_per_second", ceiling_of("launch_per_second"));
  }

  static constexpr unsigned kMaxQueued = 256;  // rounds of launches between two waits for an empty queue

  Session& session_;
};

const ExperimentRegistration registered(
    "launch", {.description = "cost of launching an empty kernel",
               .axes = [] { return AxisTable(own_axes().list()); },
               .figures = {{"kernels_per_second", "kernels/s", Better::higher, false, true,
                            "completed kernels, launched back to back (without waiting for earlier ones to complete)"},
                           {"round_trip_ns", "ns", Better::lower, true, true,
                            "from the launch of a unit until the host knows that it has ended"},
                           {"call_ns", "ns", Better::lower, true, false, "time of a unit's launch calls, per kernel"}},
               .variant = {"form"},
               .rate = "kernels_per_second",
               .time = "round_trip_ns",
               .make = [](Session& session) { return std::make_unique<Launch>(session); },
               .threads = [](const Values& values) { return own_axes().of(values).threads; },
               .unused_options = {"external-worker", "messages", "no-stages", "pin", "trace", "warmup"}});

}  // namespace
}  // namespace feedrate::launch
