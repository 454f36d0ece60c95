#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "common/clock.hpp"
#include "common/error.hpp"
#include "common/nvtx_range.hpp"
#include "experiments/harness/machine/machine_monitor.hpp"
#include "experiments/harness/measure/session.hpp"
#include "experiments/harness/timeline/cell_timeline.hpp"
#include "experiments/overlap/stage_times.hpp"
#include "variants/overlap/strategy.hpp"

/// The `overlap` experiment: ways to overlap the stages of a pipeline (experiments/overlap/README.md).
namespace feedrate::overlap {
namespace {

constexpr std::size_t kMaxMemory = std::size_t{16} << 30;  // bytes, for device memory and for pinned memory

struct Options {
  std::string pipeline = "chain", strategy = "ring", device = "auto";
  std::size_t item_bytes = 1 << 20;
  unsigned items = 64;
  double cost_us = 50;
  std::string balance = "even";
  unsigned stage_blocks = 0;
};

const Axes<Options>& shared_axes() {
  static const auto kAxes =
      Axes<Options>()
          .word(
              "pipeline", &Options::pipeline, [] { return Pipelines::instance().list(); },
              "the stages that items go through")
          .word(
              "strategy", &Options::strategy, [] { return Strategies::instance().list(); },
              "how the stages are run and ordered")
          .word("device", &Options::device, {"auto", "cpu", "cuda"},
                "device that runs the pipeline; auto = cuda if there is a GPU")
          .number("item", &Options::item_bytes, {8, 256 << 20, 8, "item_bytes"}, "bytes per item")
          .number("items", &Options::items, {2, 4096}, "items per run; a run begins and ends with nothing in flight")
          .number("cost-us", &Options::cost_us, {0, 100'000}, "average time of a kernel per item, in microseconds")
          .word("balance", &Options::balance, balances(), "distribution of the cost over the kernels")
          .number("stage-blocks", &Options::stage_blocks, {0, 1024},
                  "blocks of a stage's kernel; 0 = as many as let all stages fit side by side, one block per SM");
  return kAxes;
}

const PipelineEntry& pipeline_of(const Options& options) {
  return Pipelines::instance().get("--pipeline", options.pipeline);
}
const StrategyEntry& strategy_of(const Options& options) {
  return Strategies::instance().get("--strategy", options.strategy);
}

/// Values on the axes of this point's members.
Values own_values(const Options& options, const Values& values) {
  return values_on(joined(pipeline_of(options).axes, strategy_of(options).axes), values);
}

constexpr auto kPeerCopies = "peer_copy_bytes_per_second";

/// Adds the limit for items that cross from one device to the other.
void add_peer_limit(LimitList& limits, const std::vector<Device*>& devices) {
  constexpr std::size_t kBytes = std::size_t{64} << 20;
  const auto index = [&](std::size_t i) {
    return devices.empty() ? static_cast<unsigned>(i) : devices[i]->info().index;
  };
  limits.add({kPeerCopies, Quantity::bytes_per_second, peer_scope(index(0), index(1)),
              "64 MiB copies from one device's memory to another's"},
             [&] {
               devices[1]->use_in_this_thread();
               const Buffer to = devices[1]->allocate_device(kBytes);
               devices[0]->use_in_this_thread();
               const Buffer from = devices[0]->allocate_device(kBytes);
               const auto stream = devices[0]->stream();
               return static_cast<double>(kBytes) * per_second(kReadingSeconds, [&] {
                        stream->copy_to_peer(to.data(), from.data(), kBytes);
                        stream->synchronize();
                      });
             });
}

/// Results of interleaved runs of the strategy and the control.
struct Runs {
  Histogram strategy, serial;  ///< ns per run
  unsigned wrong = 0, verified = 0;
  std::string first_wrong;
};

/// The session's device, and a second one of the same kind for strategies that use two.
class Devices {
 public:
  explicit Devices(Device& first) : first_(first) {}
  /// Devices for a strategy. Throws BadInput if the machine has too few.
  std::vector<Device*> of(const StrategyEntry& strategy) {
    if (strategy.devices < 2) return {&first_};
    if (!second_) second_ = first_.kind() == "cpu" ? open_cpu_device() : another_gpu();
    return {&first_, second_.get()};
  }
  /// Reason why a strategy cannot run a pipeline here; empty if it can.
  std::string why_unsupported(const std::string& name, const PipelineShape& shape) {
    const StrategyEntry& strategy = Strategies::instance().get("--strategy", name);
    try {
      return feedrate::why_unsupported(strategy, shape, of(strategy));
    } catch (const BadInput&) {
      return fmt::format("strategy {} needs {} GPUs; this machine has fewer", name, strategy.devices);
    }
  }

 private:
  std::unique_ptr<Device> another_gpu() {
    const auto index = other_gpu(first_);
    if (!index) throw BadInput("--device", "cuda", "a machine with two GPUs");
    auto found = open_device("cuda", *index);
    first_.use_in_this_thread();
    return found;
  }

  Device& first_;
  std::unique_ptr<Device> second_;
};

class Overlap final : public Experiment {
 public:
  explicit Overlap(Session& session) : session_(session), devices_(session.device()), calibration_(session.device()) {}

  Resolution resolve(const Values& values) override {
    Options options = shared_axes().of(values);
    options.device = session_.device().kind();
    Resolution made;
    made.values = own_values(options, values);
    const PipelineShape shape = shape_of(options, made.values);
    options.stage_blocks = shape.blocks;
    if (options.device == "cpu") {
      options.stage_blocks = 0;
      made.unused["stage-blocks"] = "with --device cuda, and a GPU";
    }
    shared_axes().put(options, made.values);
    made.impossible = why_impossible(options, made.values, shape);
    return made;
  }

  void add_limits(LimitList& limits, std::span<const Resolution> points) override {
    const auto crosses = [](const Resolution& point) {
      return point.impossible.empty() && strategy_of(shared_axes().of(point.values)).devices > 1;
    };
    const auto found = std::ranges::find_if(points, crosses);
    if (found == points.end()) return;
    add_peer_limit(limits, devices_.of(strategy_of(shared_axes().of(found->values))));
  }

  Measurement measure(const Resolution& cell, const Repetition& repetition) override {
    const Options options = shared_axes().of(cell.values);
    Measurement measured;
    measured.host_threads = 1;
    const StrategyEntry& entry = strategy_of(options);
    PipelineShape shape = shape_of(options, cell.values);
    if (entry.resident_blocks && options.device != "cpu") measured.sms = entry.resident_blocks(shape);
    session_.device().use_in_this_thread();  // an aborted cell may have left another device selected
    calibrate(options, shape);
    const StageTimes stages = measure_stages(shape, session_.device(), options.items);
    const std::vector<Device*> devices = devices_.of(entry);
    MachineMonitor monitor(session_.gpu());
    const Runs runs = run_for(session_.settings().seconds, options, cell.values, shape, devices, repetition, measured);
    measured.machine = monitor.stop();
    measured.details["verified"] = {{"items", runs.verified}, {"wrong", runs.wrong}};
    describe_stages(shape, stages, measured.details);
    if (runs.wrong != 0) {
      measured.judge(Status::failed, Cause::wrong_results,
                     fmt::format("{} of {} items are wrong; {}", runs.wrong, runs.verified, runs.first_wrong));
      return measured;
    }
    if (runs.strategy.samples() == 0) {
      measured.judge(Status::invalid, Cause::no_results, "no run ended within the timed phase");
      return measured;
    }
    add_figures(options, stages, runs, measured);
    if (entry.devices > 1) measured.bounds_of_figures.emplace_back("bytes_per_second", ceiling_of(kPeerCopies));
    return measured;
  }

 private:
  PipelineShape shape_of(const Options& options, const Values& own) const {
    PipelineShape shape;
    shape.stages = pipeline_of(options).stages(own);
    shape.rounds.assign(shape.stages.size(), 1);
    shape.words = options.item_bytes / sizeof(std::uint64_t);
    shape.items = options.items;
    shape.blocks = options.stage_blocks;
    if (shape.blocks == 0) {
      const auto stages = static_cast<unsigned>(shape.stages.size());
      shape.blocks = session_.device().kind() == "cpu" ? 1 : std::max(1u, session_.device().info().processors / stages);
    }
    return shape;
  }

  std::string why_impossible(const Options& options, const Values& own, const PipelineShape& shape) {
    if (auto reason = devices_.why_unsupported(options.strategy, shape); !reason.empty()) return reason;
    const std::size_t between = strategy_of(options).buffers(own);
    const std::size_t buffers = between * (shape.stages.size() - 1) + 2 * shape.stages.size();
    const std::size_t bytes = (buffers + 2 * std::size_t{options.items}) * item_bytes(shape.words);
    if (bytes > kMaxMemory) {
      return fmt::format("{} buffers and {} items of {} bytes are more than the {} GiB allowed", buffers, options.items,
                         options.item_bytes, kMaxMemory >> 30);
    }
    return "";
  }

  void calibrate(const Options& options, PipelineShape& shape) {
    std::vector<unsigned> kernels;
    for (unsigned s = 0; s < shape.stages.size(); ++s) {
      if (!is_copy(shape.stages[s].role)) kernels.push_back(s);
    }
    const std::vector<double> costs = spread_costs(options.balance, options.cost_us * 1e3, kernels.size());
    for (std::size_t i = 0; i < kernels.size(); ++i) {
      shape.rounds[kernels[i]] =
          calibration_.rounds(shape.stages[kernels[i]].role, shape.words, shape.blocks, costs[i]);
    }
  }

  Runs run_for(double seconds, const Options& options, const Values& own, const PipelineShape& shape,
               std::span<Device* const> devices, const Repetition& repetition, Measurement& measured) {
    Pipeline pipeline(shape, *devices.front());
    const auto strategy = strategy_of(options).make({pipeline, devices, options.items, own});
    const auto serial =
        Strategies::instance().get("--strategy", "serial").make({pipeline, devices.first(1), options.items});
    const bool control = options.strategy == "serial";
    Runs runs;
    const auto run_once = [&](Strategy& what, Histogram* times) {
      pipeline.begin(options.items);
      const std::uint64_t begin = now_ns();
      what.run(options.items);
      const std::uint64_t end = now_ns();
      if (times != nullptr) times->record(end - begin);
      const Pipeline::Verdict verdict = pipeline.verify();
      runs.verified += options.items;
      if (verdict.wrong != 0 && runs.wrong == 0) runs.first_wrong = verdict.first;
      runs.wrong += verdict.wrong;
    };
    {
      const NvtxRange range("warm-up");
      run_once(*strategy, nullptr);
      run_once(*serial, nullptr);
    }
    const NvtxRange range("timed");
    const Captured captured(session_);
    if (repetition.timeline != nullptr)
      measured.gpu_use = traced_run(pipeline, *strategy, options, own, *repetition.timeline);
    const auto budget_ns = static_cast<std::uint64_t>(seconds * 1e9);
    const std::uint64_t began_ns = now_ns();
    // At least one run, however long it takes. The strategy and the control take turns going first.
    for (unsigned pair = 0; runs.wrong == 0 && !interrupted() && (pair == 0 || now_ns() - began_ns < budget_ns);
         ++pair) {
      if (control || pair % 2 == 0) run_once(*strategy, &runs.strategy);
      if (!control) run_once(*serial, &runs.serial);
      if (!control && pair % 2 != 0) run_once(*strategy, &runs.strategy);
    }
    if (control) runs.serial = runs.strategy;
    return runs;
  }

  /// Runs the strategy alone once with a timeline, which shows how many stages the GPU ran at once.
  Json traced_run(Pipeline& pipeline, Strategy& strategy, const Options& options, const Values& own,
                  CellTimeline& timeline) {
    pipeline.begin(options.items);
    timeline.begin();
    const std::uint64_t begin = now_ns();
    strategy.run(options.items);
    const double seconds = static_cast<double>(now_ns() - begin) / 1e9;
    return timeline.end({}, begin, seconds, {{"params", session_.info().axes().params(own)}});
  }

  static void describe_stages(const PipelineShape& shape, const StageTimes& times, Json& details) {
    Json stages = Json::array();
    for (std::size_t s = 0; s < shape.stages.size(); ++s) {
      stages.push_back({{"name", shape.stages[s].name},
                        {"rounds", is_copy(shape.stages[s].role) ? 0 : shape.rounds[s]},
                        {"alone_ns", times.alone[s]},
                        {"contended_ns", times.contended[s]}});
    }
    details["stages"] = std::move(stages);
  }

  static void add_figures(const Options& options, const StageTimes& stages, const Runs& runs, Measurement& measured) {
    const auto run_ns = static_cast<double>(runs.strategy.quantile(0.5));
    const auto serial_ns = static_cast<double>(runs.serial.quantile(0.5));
    const double rate = options.items / run_ns * 1e9;
    measured.histograms["run_ns"] = {runs.strategy, 1};
    measured.numbers["items_per_second"] = rate;
    measured.numbers["bytes_per_second"] = rate * static_cast<double>(options.item_bytes);
    measured.numbers["speedup"] = serial_ns / run_ns;
    measured.details["runs"] = runs.strategy.samples();
    measured.details["serial_ns"] = {{"p50", serial_ns}, {"runs", runs.serial.samples()}};
    if (!measured.gpu_use.is_null()) {
      // The same figure from the stages' times: the total work of a run divided by its duration.
      const double work = std::accumulate(stages.contended.begin(), stages.contended.end(), 0.0) * options.items;
      measured.details["at_once"] = {{"by_stage_times", work / run_ns},
                                     {"by_activity", measured.gpu_use["mean_at_once"]}};
    }
    const double alone = ideal_ns(stages.alone, options.items), contended = ideal_ns(stages.contended, options.items);
    measured.details["ideal_ns"] = {{"alone", alone}, {"contended", contended}};
    // Share of the possible saving that the strategy achieves. If the possible saving is close to zero, the share is
    // meaningless.
    const auto efficiency = [&](const std::string& figure, double ideal) {
      constexpr double kLeastSaving = 0.1;
      if (serial_ns - ideal < kLeastSaving * serial_ns) {
        measured.details["no_saving"][figure] = (serial_ns - ideal) / serial_ns;
      } else {
        measured.numbers[figure] = (serial_ns - run_ns) / (serial_ns - ideal);
      }
    };
    efficiency("overlap_efficiency", contended);
    efficiency("overlap_efficiency_alone", alone);
    const double slowest = *std::ranges::max_element(stages.alone);
    measured.bounds_of_figures.emplace_back("items_per_second", 1 / given("slowest_stage_alone", slowest / 1e9));
  }

  Session& session_;
  Devices devices_;
  Calibration calibration_;
};

Json members() {
  Json pipelines = Json::array(), strategies = Json::array();
  for (const auto& [name, entry] : Pipelines::instance().entries()) {
    pipelines.push_back(
        {{"name", name}, {"description", entry.description}, {"unavailable", ""}, {"axes", names_of(entry.axes)}});
  }
  const DeviceInfo device = describe_device("auto");
  for (const auto& [name, entry] : Strategies::instance().entries()) {
    strategies.push_back({{"name", name},
                          {"description", entry.description},
                          {"unavailable", entry.unavailable(device)},
                          {"devices", entry.devices},
                          {"axes", names_of(entry.axes)}});
  }
  return {{"pipelines", pipelines}, {"strategies", strategies}};
}

const ExperimentRegistration registered(
    "overlap",
    {.description = "how the stages of a pipeline are run so that copies and kernels overlap",
     .axes =
         [] {
           AxisTable table(shared_axes().list());
           for (const auto& [name, entry] : Pipelines::instance().entries()) table.add(name, entry.axes);
           for (const auto& [name, entry] : Strategies::instance().entries()) table.add(name, entry.axes);
           return table;
         },
     .figures = {{"items_per_second", "items/s", Better::higher, false, true, "verified items, over complete runs"},
                 {"bytes_per_second", "B/s", Better::higher, false, false, "bytes of the verified items"},
                 {"speedup", "", Better::higher, false, true,
                  "time of a run with strategy serial / time of a run with this strategy"},
                 {"overlap_efficiency", "", Better::higher, false, true,
                  "(serial - run) / (serial - ideal), with ideal from the stages' concurrent times"},
                 {"overlap_efficiency_alone", "", Better::higher, false, false,
                  "the same, with ideal from the stages' times alone"},
                 {"run_ns", "ns", Better::lower, true, true, "from the first call until all items have arrived"}},
     .variant = {"strategy"},
     .shown = {"pipeline", "item"},
     .rate = "items_per_second",
     .time = "run_ns",
     .make = [](Session& session) { return std::make_unique<Overlap>(session); },
     .listing = {members, [](LimitList& limits) { add_peer_limit(limits, {}); }},
     .unused_options = {"external-worker", "messages", "no-stages", "pin", "warmup"}});

}  // namespace
}  // namespace feedrate::overlap
