#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "common/redis/private_server.hpp"
#include "experiments/feeding/axes.hpp"
#include "experiments/timeline/cell_trace.hpp"
#include "experiments/feeding/load.hpp"
#include "experiments/machine/machine_state.hpp"

namespace feedrate {

/// How each cell is measured; the same for all cells of a sweep.
struct RunSettings {
  double seconds = 0.5;
  double warmup_seconds = 0.1;
  std::uint64_t messages = 0;  ///< instead of seconds, when not 0
  std::uint64_t seed = 1;
  unsigned repetitions = 1;
  bool until_precise = false;  ///< repetitions beyond that number, until the intervals are as narrow as follows
  double throughput_within = 0.02, latency_within = 0.05;  ///< half widths, as shares of the means
  std::string percentile = "p99";                          ///< of latency: p50, p90, p99 or p999
  unsigned most_repetitions = 30;
  double time_limit = 60;  ///< seconds of a point's repetitions together
  bool pin_threads = false;
  double watchdog_seconds = 10;
  bool no_stages = false;           ///< no stage times
  bool keep_disturbed = false;      ///< a repetition counts although something disturbed it (machine_state.hpp)
  bool compare_with_driver = true;  ///< a row near what the driver alone reaches is invalid
  bool external_worker = false;
  bool traced = false;  ///< a recorder of activities runs all the while, which costs a little
};
Json to_json(const RunSettings&);

/// What one invocation works with: the device, Redis if needed, the floors once they are measured.
class Session {
 public:
  Session(const std::string& device, unsigned gpu, RedisSettings redis, std::string command, RunSettings settings);

  Device& device() { return *device_; }
  const RunSettings& settings() const { return settings_; }
  /// From now on cells are measured so; returns how they were.
  RunSettings exchange_settings(RunSettings settings) { return std::exchange(settings_, std::move(settings)); }
  /// The server's settings; starts the private server when first asked.
  const RedisSettings& redis();
  /// Ends the private server, if there is one; the next `redis()` starts another.
  void stop_redis();
  const Json& environment();

  /// Measures the floors on this machine as rows (`redis`: those of Redis too) and keeps them for `floors()`.
  std::vector<Json> measure_floors(bool redis);
  void add_floor_row(const Json& row);
  const Json& floors() const { return floors_; }

  /// Runs a resolved point once and makes its row; never throws for what goes wrong inside the cell.
  Json run_cell(const Resolution&, unsigned repetition, CellTrace* trace = nullptr);
  /// The row of a cell that never returned. May be called from another thread than the one that hangs.
  Json failed_row(const Point&, unsigned repetition, const std::string& reason) const;

 private:
  Json empty_row(const Point&, unsigned repetition) const;
  void measure(const Point&, CellTrace*, Json& row);
  /// What the driver alone reaches with this point's payload, batch, window and producers: the null queue's rate. It is
  /// measured once for all such points, and again when `rate` comes near it.
  double driver_limit(const Point&, double rate);
  /// Says in the row when `rate`, which was reached or asked for, is more than the driver could be trusted with.
  void compare_with_driver(const Point&, double rate, Json& row);
  /// What a load left behind; the counts and costs also when it failed.
  struct Outcome {
    unsigned repetition = 0;  // which arrivals
    Counts counts;
    std::string first_wrong;
    Cost cost;
    Choices choices;
    unsigned sample_every = 1;
    std::uint64_t stages_sampled_every = 1;
    PassResult warmup, result;
    MachineState machine;  // during the timed phase
    ClockMap clock;        // the device's, if stages were timed
    CellTrace* trace = nullptr;
    Json gpu_use;  // what the trace says of it
  };
  std::optional<ClockReading> read_clock();
  void run_load(const Point&, const RunSettings&, const GpuSource& watched, Outcome&);

  RunSettings settings_;
  RedisSettings redis_;
  std::string command_;
  std::unique_ptr<Device> device_;
  GpuSource gpu_source_;
  std::unique_ptr<redis::PrivateServer> private_redis_;
  Json floors_ = Json::object(), environment_;
  std::uint64_t environment_at_ = 0;
  std::map<std::string, double> driver_limits_;
};

/// Set by SIGINT and SIGTERM: what runs ends soon, with its rows written.
bool interrupted();
void install_signal_handlers();

}  // namespace feedrate
