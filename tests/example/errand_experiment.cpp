// An experiment with open load but without messages: one clerk runs errands, each of the same duration. Its figures and
// its capacity are therefore known in advance.
#include <deque>

#include "common/clock.hpp"
#include "experiments/harness/load/offer.hpp"
#include "experiments/harness/load/open_load.hpp"
#include "experiments/harness/load/schedule.hpp"
#include "experiments/harness/measure/session.hpp"

namespace feedrate {
namespace {

struct Options {
  std::string device = "auto";
  std::uint64_t errand_us = 100;
  std::uint64_t window = 16;
};
const Axes<Options>& own_axes() {
  static const auto kAxes =
      Axes<Options>()
          .word("device", &Options::device, {"auto", "cpu", "cuda"}, "device to run on")
          .number("errand-us", &Options::errand_us, {1, 1e6}, "duration of an errand in microseconds")
          .number("window", &Options::window, {1, 1024}, "maximum number of errands under way");
  return kAxes;
}

/// Runs one errand after another; each starts when the previous one ends.
class Clerk final : public Endpoint {
 public:
  explicit Clerk(std::uint64_t errand_ns) : errand_ns_(errand_ns) {}
  bool submit(std::size_t slot, std::uint64_t) override {
    free_at_ = std::max(free_at_, now_ns()) + errand_ns_;
    under_way_.emplace_back(free_at_, slot);
    return true;
  }
  std::size_t poll(std::span<std::size_t> ended) override {
    std::size_t count = 0;
    for (const auto now = now_ns(); count < ended.size() && !under_way_.empty() && under_way_.front().first <= now;) {
      ended[count++] = under_way_.front().second;
      under_way_.pop_front();
    }
    return count;
  }

 private:
  std::uint64_t errand_ns_, free_at_ = 0;
  std::deque<std::pair<std::uint64_t, std::size_t>> under_way_;  // end time and slot of each errand
};

class Errands final : public Experiment {
 public:
  explicit Errands(Session& session) : session_(session) {}
  Resolution resolve(const Values& values) override {
    Options options = own_axes().of(values);
    options.device = session_.device().kind();
    Resolution made;
    own_axes().put(options, made.values);
    const LoadShape shape = load_axes().of(values);
    load_axes().put(shape, made.values);
    made.impossible = why_invalid_shape(shape);
    return made;
  }
  Measurement measure(const Resolution& cell, const Repetition& repetition) override {
    const Options options = own_axes().of(cell.values);
    const LoadShape shape = load_axes().of(cell.values);
    const RunSettings& settings = session_.settings();
    Measurement measured;
    measured.host_threads = 1;
    Clerk clerk(options.errand_us * 1000);
    Schedule schedule;
    if (is_open(shape)) schedule = make_schedule(shape, settings.seconds, settings.seed + repetition.number);
    const LoadResult result = offer(clerk, {.seconds = settings.seconds,
                                            .window = options.window,
                                            .schedule = is_open(shape) ? &schedule : nullptr,
                                            .interrupted = interrupted});
    if (result.received == 0) {
      measured.judge(Status::invalid, Cause::no_results, "no errand was run within the timed phase");
      return measured;
    }
    measured.numbers["errands_per_second"] = static_cast<double>(result.received) / result.seconds;
    measured.histograms["latency_ns"] = {result.latency, 1};
    if (is_open(shape)) describe_open_load(result, {}, measured);
    return measured;
  }

 private:
  Session& session_;
};

std::vector<Figure> figures() {
  std::vector<Figure> all{
      {"errands_per_second", "1/s", Better::higher, false, true, "errands completed"},
      {"latency_ns", "ns", Better::lower, true, true, "time from submission to completion of an errand"}};
  for (Figure& each : open_load_figures()) all.push_back(std::move(each));
  return all;
}

const ExperimentRegistration registered("errands",
                                        {.description = "example: open load without messages",
                                         .axes =
                                             [] {
                                               AxisTable table;
                                               table.add("", joined(own_axes().list(), load_axes().list()));
                                               return table;
                                             },
                                         .figures = figures(),
                                         .variant = {"errand-us"},
                                         .rate = "errands_per_second",
                                         .time = "latency_ns",
                                         .make = [](Session& session) { return std::make_unique<Errands>(session); },
                                         .searching = {.load = offered_load()}});

}  // namespace
}  // namespace feedrate
