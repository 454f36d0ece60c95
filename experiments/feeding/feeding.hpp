#pragma once
#include <map>
#include <string>

#include "experiments/feeding/axes.hpp"
#include "experiments/feeding/generator_limit.hpp"
#include "experiments/feeding/load.hpp"
#include "experiments/feeding/stamped.hpp"
#include "experiments/harness/measure/session.hpp"

namespace feedrate {

/// The `feeding` experiment: queues × transfers × workloads under a load.
class Feeding final : public Experiment {
 public:
  explicit Feeding(Session& session) : session_(session) {}
  Resolution resolve(const Values&) override;
  void connect(std::span<const Resolution>) override;
  void add_limits(LimitList&, std::span<const Resolution>) override;
  Measurement measure(const Resolution&, const Repetition&) override;

 private:
  /// Outcome of a load; counts and costs are also set if it failed.
  struct Outcome {
    Counts counts;
    std::string first_wrong;
    Cost cost;
    bool durable = false;
    std::optional<double> service_cores;  // CPU seconds per second of the queue's service in the timed phase
    Choices choices;
    unsigned sample_every = 1;
    std::uint64_t stages_sampled_every = 1;
    PassResult warmup, result;
    MachineState machine;  // during the timed phase
    ClockMap clock;        // the device's, if stages were timed
    Json gpu_use;          // use of the GPU, from the timeline
  };
  /// Reads the device's clock; empty if this fails. Then only the stage times are missing.
  std::optional<ClockReading> read_clock();
  void run_load(const Point&, const RunSettings&, const GpuSource& watched, const Repetition&, Outcome&);
  /// The present limit of the load generator for this point's memory footprint.
  GeneratorLimit generator_limit(const Point&);
  /// Judges the row as generator-bound if `rate`, measured or requested, is too close to the load generator's limit.
  void compare_with_generator(const Point&, double rate, Measurement&);

  /// The point's workload, prepared for checking results; the last one is kept for the next repetition.
  const Workload& workload_of(const Point&);
  /// Stamped messages for one load if `touch` is `stamp`; otherwise null, and the workload's own messages are used.
  std::unique_ptr<const Payloads> stamped_of(const Point&);

  Session& session_;
  std::unique_ptr<Workload> workload_;
  Values workload_made_of_;
  std::optional<PayloadPool> stamps_;  // pool for `workload_`; made when a point needs it
};

}  // namespace feedrate
