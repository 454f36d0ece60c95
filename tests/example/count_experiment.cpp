// An experiment is one folder; a small experiment is one file.
#include <atomic>

#include "common/clock.hpp"
#include "experiments/harness/measure/session.hpp"

namespace feedrate {
namespace {

struct Options {
  std::string device = "auto";
  unsigned step = 1;
};
const Axes<Options>& own_axes() {
  static const auto kAxes = Axes<Options>()
                                .word("device", &Options::device, {"auto", "cpu", "cuda"}, "device to run on")
                                .number("step", &Options::step, {1, 16}, "amount added per count");
  return kAxes;
}

/// Measures how fast a host thread counts.
class Count final : public Experiment {
 public:
  explicit Count(Session& session) : session_(session) {}
  Resolution resolve(const Values& values) override {
    Options options = own_axes().of(values);
    options.device = session_.device().kind();
    Resolution made;
    own_axes().put(options, made.values);
    if (options.step == 13) made.impossible = "step 13 is not supported";
    return made;
  }
  Measurement measure(const Resolution& cell, const Repetition&) override {
    const Options options = own_axes().of(cell.values);
    Measurement measured;
    measured.host_threads = 1;
    std::atomic<std::uint64_t> count{0};
    Histogram steps;
    const std::uint64_t begin = now_ns(), end = begin + static_cast<std::uint64_t>(session_.settings().seconds * 1e9);
    for (std::uint64_t last = begin, now = begin; now < end; last = now) {
      count += options.step;
      now = now_ns();
      steps.record(now - last);
    }
    measured.numbers["counted_per_second"] = static_cast<double>(count) / session_.settings().seconds;
    measured.histograms["step_ns"] = {steps, 1};
    return measured;
  }

 private:
  Session& session_;
};

const ExperimentRegistration registered(
    "count", {.description = "example: how fast a host thread counts",
              .axes =
                  [] {
                    AxisTable table;
                    table.add("", own_axes().list());
                    return table;
                  },
              .figures = {{"counted_per_second", "1/s", Better::higher, false, true, "amount counted per second"},
                          {"step_ns", "ns", Better::lower, true, true, "duration of each step"}},
              .variant = {"step"},
              .rate = "counted_per_second",
              .time = "step_ns",
              .make = [](Session& session) { return std::make_unique<Count>(session); }});

}  // namespace
}  // namespace feedrate
