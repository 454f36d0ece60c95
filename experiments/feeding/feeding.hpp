#pragma once
#include <map>
#include <string>

#include "experiments/feeding/axes.hpp"
#include "experiments/feeding/driver_limit.hpp"
#include "experiments/feeding/load.hpp"
#include "experiments/feeding/stamped.hpp"
#include "experiments/harness/measure/session.hpp"

namespace feedrate {

/// How messages get to the GPU and results back: queues × transfers × workloads under a load.
class Feeding final : public Experiment {
 public:
  explicit Feeding(Session& session) : session_(session) {}
  Resolution resolve(const Values&) override;
  void connect(std::span<const Resolution>) override;
  void add_limits(LimitList&, std::span<const Resolution>) override;
  Measurement measure(const Resolution&, const Repetition&) override;

 private:
  /// What a load left behind; the counts and costs also when it failed.
  struct Outcome {
    Counts counts;
    std::string first_wrong;
    Cost cost;
    Choices choices;
    unsigned sample_every = 1;
    std::uint64_t stages_sampled_every = 1;
    PassResult warmup, result;
    MachineState machine;  // during the timed phase
    ClockMap clock;        // the device's, if stages were timed
    Json gpu_use;          // what the timeline says of it
  };
  /// Without it there are no stage times, but all the rest.
  std::optional<ClockReading> read_clock();
  void run_load(const Point&, const RunSettings&, const GpuSource& watched, const Repetition&, Outcome&);
  /// Of this point's memory footprint; measured when it is first asked for.
  const DriverLimit& driver_limit(const Point&);
  /// Says when `rate`, which was reached or asked for, is more than the load generator could be trusted with.
  void compare_with_driver(const Point&, double rate, Measurement&);

  /// The point's, with what it needs to check results: the last one is kept, for the next repetition.
  const Workload& workload_of(const Point&);
  /// Its messages where the driver only stamps them, for one load; else none, and the workload's own are meant.
  std::unique_ptr<const Payloads> stamped_of(const Point&);

  Session& session_;
  std::unique_ptr<Workload> workload_;
  Values workload_made_of_;
  std::optional<PayloadPool> stamps_;                 // of `workload_`; made when a point needs them
  std::map<std::string, DriverLimit> driver_limits_;  // by the yardstick's parameters
};

}  // namespace feedrate
