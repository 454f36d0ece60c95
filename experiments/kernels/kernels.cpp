#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "common/error.hpp"
#include "experiments/harness/kernels/kernel_timer.hpp"
#include "experiments/harness/machine/machine_monitor.hpp"
#include "experiments/harness/measure/session.hpp"
#include "experiments/harness/measure/statistics.hpp"
#include "experiments/kernels/counters.hpp"
#include "experiments/kernels/cpu_limits.hpp"
#include "features.hpp"
#include "kernels/ladder/ladder.hpp"

/// The `kernels` experiment: how near each rung of a ladder comes to the roofline and to the best library
/// (experiments/kernels/README.md).
namespace feedrate::kernels {
namespace {

using namespace ladder;

// Bytes for inputs and results. The CPU device fills and checks a GiB in seconds.
constexpr std::size_t kMaxMemory = std::size_t{24} << 30, kMaxCpuMemory = std::size_t{2} << 30;
constexpr double kSampleNs = 500'000;     // least time of a sample
constexpr unsigned kMostLaunches = 4096;  // per sample
constexpr unsigned kLeastSamples = 10;
constexpr double kBurstPauseMs = 20;
// Threads of OpenMP and OpenBLAS keep spinning after a product; the next sample waits until they sleep.
constexpr double kThreadsPauseMs = 50;

const std::vector<RungInfo>& rungs_of_ladder(const std::string& ladder) {
  static std::map<std::string, std::vector<RungInfo>> known;
  const auto [found, fresh] = known.try_emplace(ladder);
  if (fresh) found->second = Ladders::instance().get("--ladder", ladder).rungs();
  return found->second;
}
const RungInfo* find_rung(const std::string& ladder, const std::string& name) {
  const auto& rungs = rungs_of_ladder(ladder);
  const auto found = std::ranges::find(rungs, name, &RungInfo::name);
  return found == rungs.end() ? nullptr : &*found;
}

#ifdef FEEDRATE_WITH_CUDA
/// Names of the rungs and peers of all ladders.
std::vector<std::string> all_rungs() {
  std::vector<std::string> names;
  for (const auto& [ladder, entry] : Ladders::instance().entries()) {
    for (const RungInfo& rung : rungs_of_ladder(ladder)) {
      if (std::ranges::find(names, rung.name) == names.end()) names.push_back(rung.name);
    }
  }
  return names;
}
#endif

struct Options {
  std::string ladder = "matmul", rung = "cpu_naive", device = "auto", against = "peers", cache = "cold",
              pace = "sustained";
};
/// In a build without CUDA the names of the rungs for GPUs are unknown: points with them are possible to name, so that
/// a spec for GPUs can be planned, and cannot be measured.
void add_name(Axes<Options>& axes, const char* name, std::string Options::*field, std::vector<std::string> words,
              const char* help) {
#ifdef FEEDRATE_WITH_CUDA
  axes.word(
      name, field,
      [words = std::move(words)] {
        std::vector<std::string> all = words;
        std::ranges::copy(all_rungs(), std::back_inserter(all));
        return all;
      },
      help);
#else
  static_cast<void>(words);
  axes.text(
      name, field, [](const std::string&) {}, help);
#endif
}

const Axes<Options>& own_axes() {
  static const auto kAxes = [] {
    Axes<Options> axes;
    axes.word(
        "ladder", &Options::ladder, [] { return Ladders::instance().list(); }, "the problem that is solved");
    add_name(axes, "rung", &Options::rung, {}, "the kernel, or a peer: a library's");
    add_name(axes, "against", &Options::against, {"peers", "alone"},
             "what is timed in turn with the rung, on the same inputs: all peers here, nothing (alone), or one rung or "
             "peer");
    axes.word("device", &Options::device, {"auto", "cpu", "cuda"},
              "device that runs the rung; auto = cuda if there is a GPU");
    axes.word("cache", &Options::cache, {"cold", "hot"},
              "cold: the inputs rotate, and together exceed three times the device's cache; hot: one set of inputs");
    axes.word("pace", &Options::pace, {"sustained", "burst"},
              "sustained: without pause, at the clock that the power limit allows; burst: pauses between the samples");
    return axes;
  }();
  return kAxes;
}

const LadderEntry& ladder_of(const Options& options) { return Ladders::instance().get("--ladder", options.ladder); }

/// A rung or peer that is timed.
struct Timed {
  std::string name;
  std::unique_ptr<Runner> runner;
  ProductVerdict verdict;
  double ns = 0;          ///< estimated time of a launch
  unsigned launches = 1;  ///< per sample

  QueueKernel queue(std::size_t copies) const {
    return
        [runner = runner.get(), copies](Stream& stream, std::size_t number) { runner->queue(stream, number % copies); };
  }
};

double median_ns(const std::vector<KernelSample>& samples) {
  std::vector<double> times;
  for (const KernelSample& sample : samples) times.push_back(sample.ns);
  return median_of(std::move(times));
}

/// Operations that one SM's tensor cores, or its FMA units for fp32, complete per clock cycle; 0 if unknown. From
/// NVIDIA's architecture papers for A100 and H100 (dense).
double operations_per_clock(const std::string& limit, unsigned capability) {
  const bool hopper = capability == 90;
  if (!hopper && capability != 80) return 0;
  if (limit == "fma_f32_operations_per_second") return hopper ? 256 : 128;
  if (limit == "tensor_tf32_operations_per_second") return hopper ? 2048 : 1024;
  if (limit == "tensor_f8_operations_per_second") return hopper ? 8192 : 0;
  return hopper ? 4096 : 2048;
}

class Kernels final : public Experiment {
 public:
  explicit Kernels(Session& session) : session_(session), device_(session.device()), info_(device_.info()) {}

  Resolution resolve(const Values& values) override {
    Options options = own_axes().of(values);
    options.device = info_.kind;
    Resolution made;
    const LadderEntry& ladder = ladder_of(options);
    made.values = values_on(ladder.axes, values);
    own_axes().put(options, made.values);
    made.impossible = why_impossible(options, *ladder.make(made.values, device_));
    return made;
  }

  void add_limits(LimitList& limits, std::span<const Resolution>) override {
    if (info_.kind == "cpu") add_cpu_limits(limits);
  }

  Measurement measure(const Resolution& cell, const Repetition& repetition) override {
    const Options options = own_axes().of(cell.values);
    Measurement measured;
    measured.host_threads = 1;
    const auto problem = ladder_of(options).make(cell.values, device_);
    const std::size_t copies = copies_of(*problem, options);
    problem->prepare(copies, mix64(session_.settings().seed) + repetition.number);
    std::vector<Timed> timed;
    for (const std::string& name : names_of(options, *problem)) {
      if (interrupted()) break;
      std::string wrong;
      try {
        wrong = add_checked(timed, name, *problem, copies);
      } catch (const Failure& failure) {
        if (name == options.rung) throw;
        wrong = failure.what();
      }
      if (wrong.empty()) continue;
      if (name == options.rung) {
        measured.judge(Status::failed, Cause::wrong_results, name + ": " + wrong);
        return measured;
      }
      measured.details["failed_peers"][name] = wrong;
    }
    const auto stopped = [&] {
      measured.judge(Status::invalid, Cause::interrupted, "interrupted before the first sample");
      return measured;
    };
    if (interrupted()) return stopped();
    MachineMonitor monitor(session_.gpu());
    const auto samples = [&] {
      const Captured captured(session_);
      return time_all(timed, copies, options);
    }();
    measured.machine = monitor.stop();
    measured.machine->expects_power_cap = true;  // one large product reaches it, also after a pause
    if (samples.front().empty()) return stopped();
    add_figures(options, problem->work(), timed, samples, measured);
    if (info_.kind == "cuda") add_counters(timed, copies, median_ns(samples.front()), measured);
    measured.details["inputs"] = {{"copies", copies}, {"bytes", problem->input_bytes()}};
    return measured;
  }

 private:
  std::string why_impossible(const Options& options, const Problem& problem) const {
    for (const auto& [option, name] : {std::pair("--rung", options.rung), std::pair("--against", options.against)}) {
      if (name == "peers" || name == "alone") continue;
      if (find_rung(options.ladder, name) == nullptr) {
        return fmt::format("{} {}: ladder {} has no such rung in this build; `feedrate kernels show {}` lists them",
                           option, name, options.ladder, options.ladder);
      }
      if (auto reason = problem.why_unsupported(name); !reason.empty()) {
        return fmt::format("{} {}: {}", option, name, reason);
      }
    }
    if (options.against == options.rung) {
      return fmt::format("--against {}: it is the rung itself; choose another one, or alone", options.against);
    }
    const std::size_t copies = copies_of(problem, options);
    if (copies > kMostLaunches) {
      return fmt::format(
          "--cache cold would need {} copies of inputs of {} bytes to exceed the cache; use --cache hot or "
          "larger sizes",
          copies, problem.input_bytes());
    }
    const std::size_t bytes = copies * problem.input_bytes() + problem.result_bytes();
    const std::size_t most = std::min(info_.kind == "cpu" ? kMaxCpuMemory : kMaxMemory, info_.memory / 4 * 3);
    if (bytes > most) {
      return fmt::format("the sizes make inputs and results of {} bytes, more than the {} allowed here", bytes, most);
    }
    return "";
  }

  std::size_t copies_of(const Problem& problem, const Options& options) const {
    if (options.cache == "hot") return 1;
    return std::max<std::size_t>(2, 3 * info_.cache / std::max<std::size_t>(problem.input_bytes(), 1) + 1);
  }

  /// The rung, and what is timed in turn with it.
  std::vector<std::string> names_of(const Options& options, const Problem& problem) const {
    std::vector<std::string> names{options.rung};
    if (options.against == "alone") return names;
    if (options.against != "peers") return {options.rung, options.against};
    const bool one_core = find_rung(options.ladder, options.rung)->text.one_core;
    for (const RungInfo& each : rungs_of_ladder(options.ladder)) {
      if (!each.text.is_peer() || each.name == options.rung || each.text.one_core != one_core) continue;
      if (problem.why_unsupported(each.name).empty()) names.push_back(each.name);
    }
    return names;
  }

  /// Prepares and checks a rung or peer, estimates its time, and adds it if its results are right. Returns what is
  /// wrong otherwise.
  std::string add_checked(std::vector<Timed>& timed, const std::string& name, Problem& problem, std::size_t copies) {
    Timed made{name, problem.make(name), {}, 1};
    for (const std::size_t copy : {std::size_t{0}, copies - 1}) {
      made.verdict = problem.verify(name, *made.runner, copy);
      if (!made.verdict.wrong.empty()) return made.verdict.wrong;
    }
    // A graph begins with the same copy of the inputs each time, so it uses all of them equally often. Without a
    // graph, each sample goes on with the next copy. The estimate is made like the samples, since the calls of a
    // library may take longer on the host than on the GPU.
    const bool captured = info_.kind == "cuda";
    const auto step = static_cast<unsigned>(captured ? copies : 1);
    made.ns = median_ns(time_kernel(device_, made.queue(copies),
                                    {.seconds = 0, .warmup = 1, .least = 3, .launches = step, .captured = captured}));
    made.launches = static_cast<unsigned>(
        step * std::clamp(std::ceil(kSampleNs / std::max(made.ns, 1.0) / step), 1.0, std::floor(kMostLaunches / step)));
    timed.push_back(std::move(made));
    return "";
  }

  std::vector<std::vector<KernelSample>> time_all(std::vector<Timed>& timed, std::size_t copies,
                                                  const Options& options) {
    const RunSettings& settings = session_.settings();
    std::vector<TimedKernel> kernels;
    double longest = 0;
    for (const Timed& each : timed) {
      kernels.push_back({each.queue(copies), each.launches});
      longest = std::max(longest, each.ns * each.launches);
    }
    const double warmup_ns = 1e9 * settings.warmup_seconds / static_cast<double>(kernels.size());
    KernelTiming timing{.seconds = settings.seconds,
                        .warmup = static_cast<unsigned>(std::clamp(warmup_ns / longest, 1.0, 10'000.0)),
                        .least = kLeastSamples,
                        .captured = info_.kind == "cuda"};
    if (options.pace == "burst") timing.pause_ms = kBurstPauseMs;
    if (info_.kind == "cpu" && timed.size() > 1) timing.pause_ms = std::max(timing.pause_ms, kThreadsPauseMs);
    return time_in_turn(device_, kernels, timing, session_.gpu(), interrupted);
  }

  void add_figures(const Options& options, const Work& work, const std::vector<Timed>& timed,
                   const std::vector<std::vector<KernelSample>>& samples, Measurement& measured) const {
    Histogram times;
    for (const KernelSample& sample : samples.front()) times.record(static_cast<std::uint64_t>(sample.ns));
    const double ns = median_ns(samples.front()), rate = work.operations / ns * 1e9;
    measured.histograms["time_ns"] = {times, 1};
    measured.numbers["operations_per_second"] = rate;
    measured.numbers["bytes_per_second"] = work.bytes / ns * 1e9;
    add_bounds(options, work, measured);
    Json described = describe(samples.front());
    if (timed.size() == 1) {  // otherwise it includes that of the others
      const auto energy = energy_of_launch(samples.front(), timed.front().launches);
      if (energy && work.operations > 0) measured.numbers["energy_per_operation"] = *energy / work.operations;
    }
    const double per_clock = operations_per_clock(work.limit, info_.capability) * info_.processors;
    if (described.contains("sm_clock_mhz") && per_clock > 0) {
      const double peak = per_clock * described["sm_clock_mhz"]["median"].get<double>() * 1e6;
      measured.details["share_of_peak_at_this_clock"] = rate / peak;
    }
    double best = 0;
    for (std::size_t i = 1; i < timed.size(); ++i) {
      // Both samples of a block were taken one after the other.
      std::vector<double> ratios;
      for (std::size_t block = 0; block < std::min(samples[i].size(), samples[0].size()); ++block) {
        ratios.push_back(samples[i][block].ns / samples[0][block].ns);
      }
      if (ratios.empty()) continue;
      const double share = median_of(ratios);
      if (best == 0 || share < best) best = share;
      measured.details["peers"][timed[i].name] = {
          {"time_ns", median_ns(samples[i])}, {"share", share},
          {"error", timed[i].verdict.error},  {"launches_per_sample", timed[i].launches},
          {"samples", describe(samples[i])},  {"chosen", timed[i].runner->chosen()}};
    }
    if (best != 0) measured.numbers["share_of_best_peer"] = best;
    measured.details["samples"] = std::move(described);
    measured.details["verified"] = {{"elements", timed.front().verdict.samples},
                                    {"relative_error", timed.front().verdict.error},
                                    {"share_of_tolerance", timed.front().verdict.share}};
    measured.details["launches_per_sample"] = timed.front().launches;
    measured.details["step"] = find_rung(options.ladder, options.rung)->text.step;
    if (const auto compiled = timed.front().runner->resources()) measured.details["compiled"] = to_json(*compiled);
    if (const auto chosen = timed.front().runner->chosen(); !chosen.empty()) measured.details["chosen"] = chosen;
  }

  /// Bytes that each of them moves in one launch. Read after the timing, because the profiler delays launches.
  void add_counters(std::vector<Timed>& timed, std::size_t copies, double ns, Measurement& measured) {
    const auto stream = device_.stream();
    std::size_t number = 0;
    for (Timed& each : timed) {
      const auto run = [&] {
        each.runner->queue(*stream, number++ % copies);
        stream->synchronize();
      };
      run();  // so that the cache holds what a run leaves there
      Json& details = &each == timed.data() ? measured.details : measured.details["peers"][each.name];
      try {
        details["counters"] = read_counters(run);
      } catch (const Failure& failure) {
        measured.details["counters_missing"] = each.name + ": " + failure.what();
        break;
      }
    }
    if (!measured.details.contains("counters")) return;
    const Json& counters = measured.details["counters"];
    const double bytes = counters["dram_read_bytes"].get<double>() + counters["dram_write_bytes"].get<double>();
    measured.numbers["dram_bytes_per_second"] = bytes / ns * 1e9;
    measured.bounds_of_figures.emplace_back("dram_bytes_per_second", 2 * ceiling_of("dram_copy_bytes_per_second"));
  }

  /// The roofline: the rate of the arithmetic, and that of DRAM, or of the L2 cache for hot inputs, times the
  /// operations per byte.
  void add_bounds(const Options& options, const Work& work, Measurement& measured) const {
    const double per_byte = work.operations / std::max(work.bytes, 1.0);
    if (info_.kind == "cpu") {
      const bool one_core = find_rung(options.ladder, options.rung)->text.one_core;
      measured.bounds_of_figures.emplace_back("operations_per_second", ceiling_of(one_core ? kCpuCoreFma : kCpuFma));
      return;
    }
    measured.bounds_of_figures.emplace_back("operations_per_second", ceiling_of(work.limit));
    const auto memory = options.cache == "cold" ? 2 * ceiling_of("dram_copy_bytes_per_second")  // both ways
                                                : ceiling_of("l2_read_bytes_per_second");
    measured.bounds_of_figures.emplace_back("operations_per_second", memory * given("operations_per_byte", per_byte));
  }

  Session& session_;
  Device& device_;
  DeviceInfo info_;
};

Json members() {
  Json ladders = Json::array(), rungs = Json::array();
  for (const auto& [name, entry] : Ladders::instance().entries()) {
    ladders.push_back(
        {{"name", name}, {"description", entry.description}, {"unavailable", ""}, {"axes", names_of(entry.axes)}});
    for (const RungInfo& rung : rungs_of_ladder(name)) {
      rungs.push_back({{"name", rung.name},
                       {"description", rung.text.changes},
                       {"unavailable", rung.unavailable()},
                       {"axes", Json::array()},
                       {"ladder", name},
                       {"step", rung.text.step},
                       {"device", rung.text.device},
                       {"one_core", rung.text.one_core},
                       {"repeats", rung.text.repeats},
                       {"reason", rung.text.reason},
                       {"prediction", rung.text.prediction},
                       {"measured", rung.text.measured},
                       {"design", rung.text.design}});
    }
  }
  return {{"ladders", ladders}, {"rungs", rungs}};
}

const ExperimentRegistration registered(
    "kernels", {.description = "how near kernels come to the roofline and to the best library, rung by rung",
                .axes =
                    [] {
                      AxisTable table(own_axes().list());
                      for (const auto& [name, entry] : Ladders::instance().entries()) table.add(name, entry.axes);
                      return table;
                    },
                .figures = {{"operations_per_second", "1/s", Better::higher, false, true,
                             "arithmetic operations of the problem; a multiply-add is two"},
                            {"bytes_per_second", "B/s", Better::higher, false, false,
                             "bytes of inputs and results, each counted once"},
                            {"dram_bytes_per_second", "B/s", Better::higher, false, false,
                             "bytes that moved from and to DRAM, from the GPU's counters, / median time"},
                            {"share_of_best_peer", "", Better::higher, false, true,
                             "time of the fastest peer / time of the rung, in the same blocks of samples"},
                            {"energy_per_operation", "J", Better::lower, false, false,
                             "energy by the GPU's counter, without peers in turn"},
                            {"time_ns", "ns", Better::lower, true, true,
                             "time of one launch, from events around replayed graphs"}},
                .variant = {"ladder", "rung"},
                .shown = {"m", "n", "k", "dtype"},
                .rate = "operations_per_second",
                .time = "time_ns",
                .make = [](Session& session) { return std::make_unique<Kernels>(session); },
                .listing = {members, add_cpu_limits},
                .unused_options = {"external-worker", "messages", "no-stages", "pin", "trace"}});

}  // namespace
}  // namespace feedrate::kernels
