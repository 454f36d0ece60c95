#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/clock.hpp"
#include "common/device/device.hpp"
#include "common/limits/limit_list.hpp"
#include "experiments/harness/json.hpp"
#include "experiments/harness/machine/machine_state.hpp"
#include "experiments/harness/measure/experiment.hpp"
#include "experiments/harness/measure/settings.hpp"
#include "experiments/harness/services/services.hpp"

namespace feedrate {

/// The limits of one session. They are read in rounds: some before the first cell, more between cells.
class LimitReadings {
 public:
  /// Adds all limits to a list.
  using Add = std::function<void(LimitList&)>;

  /// Reads the limits until there are this many rounds.
  void read(Add add, unsigned rounds);
  /// Reads another round if it is short compared with the time since the last round.
  void read_if_due();
  /// Sets a limit that an earlier run measured.
  void know(const std::string& name, double value) { values_[name] = value; }

  /// Medians of the readings so far. If several limits share a name, the first one added counts, which is the limit of
  /// the session's GPU.
  const Limits& values() const { return values_; }
  unsigned rounds() const { return rounds_; }
  /// Rows with all readings so far.
  std::vector<Json> rows(const std::string& run_id, std::string_view device) const;

 private:
  void read_once();

  Add add_;
  LimitList list_;
  Limits values_;
  unsigned rounds_ = 0;
  std::uint64_t read_ns_ = 0;        // end of the last round
  std::uint64_t round_took_ns_ = 0;  // duration of the last round
};

/// The scope in the format of rows and the catalogue.
Json to_json(const Scope&);

/// When the measurement of a cell began.
struct CellStart {
  std::uint64_t ns = now_ns();
  std::string text = utc_now();
};

/// One invocation: an experiment on a device, the services that its points need, the limits after they are measured,
/// and the rows of the measurements.
class Session {
 public:
  /// `opened` is the device to use if `device` cannot identify it (in tests).
  Session(const std::string& experiment, const std::string& device, unsigned gpu, ServiceChoices services,
          std::string command, RunSettings settings, std::unique_ptr<Device> opened = nullptr);
  ~Session();

  const ExperimentInfo& info() const { return info_; }
  Experiment& experiment() { return *experiment_; }
  Resolution resolve(const Values& values) { return experiment_->resolve(values); }
  /// Checks these points and connects to the servers that they need. Throws BadInput.
  void connect(std::span<const Resolution> points) {
    experiment_->check(points);
    experiment_->connect(points);
  }
  Device& device() { return *device_; }
  /// The device, for threads that may outlive the session.
  const std::shared_ptr<Device>& shared_device() const { return device_; }
  /// Source of samples of the GPU's state; empty if it is not to be watched.
  GpuSource gpu() const { return settings_.watch_gpu ? gpu_source_ : GpuSource{}; }
  unsigned gpu_index() const { return gpu_index_; }  ///< the index for open_device()
  const RunSettings& settings() const { return settings_; }
  /// Replaces the settings for later cells; returns the previous ones. Rows record settings that differ from the run's.
  RunSettings exchange_settings(RunSettings settings) { return std::exchange(settings_, std::move(settings)); }
  RunningServices& services() { return services_; }
  /// Host, GPU, versions, and the services in use at the first call. Determined once.
  const Json& environment();

  /// Reads the limits of the device and of these points, and the limits that `more` adds, in `limit_rounds` rounds;
  /// returns their rows. Later the limits are read again occasionally, before a cell.
  std::vector<Json> measure_limits(std::span<const Resolution>, const LimitReadings::Add& more = {});
  /// The limits' rows, with all readings so far.
  std::vector<Json> limit_rows() const;
  void add_limit_row(const Json& row);
  /// Medians of the readings so far, by name, for all measured limits.
  const Limits& limits() const { return limits_.values(); }
  /// Number of readings per limit.
  unsigned limit_rounds() const { return limits_.rounds(); }

  /// The row of this invocation, with the values that its other rows share. Call it after the limits are measured.
  Json run_row();
  const std::string& run_id() const { return run_id_; }
  /// Measures a resolved point once. Errors inside the cell are part of the result.
  Measurement measure(const Resolution&, const Repetition&);
  /// The row of a cell whose measurement has ended now.
  Json cell_row(const Resolution&, unsigned repetition, Measurement, const CellStart&) const;
  /// Measures a resolved point once and returns its row; never throws for an error inside the cell.
  Json run_cell(const Resolution&, unsigned repetition, CellTimeline* timeline = nullptr);
  /// The row of a cell that never returned. May be called from a thread other than the hung one.
  Json hung_row(const Resolution&, unsigned repetition, const std::string& reason) const;
  /// The row of a capacity search's answer; `identity` distinguishes it from other answers with the same `params`.
  Json answer_row(const Json& params, const Json& identity, unsigned repetition) const;

 private:
  /// The fields common to all rows.
  Json row(const std::string& kind, const Json& params, const Json& identity, unsigned repetition) const;

  ExperimentInfo info_;
  RunSettings settings_;
  const Json run_settings_;
  RunningServices services_;
  std::string command_;
  std::shared_ptr<Device> device_;
  unsigned gpu_index_;
  GpuSource gpu_source_;
  LimitReadings limits_;
  Json environment_;
  std::string started_, run_id_;
  std::unique_ptr<Experiment> experiment_;
};

/// While this object exists, an attached profiler captures if the run's settings request it.
class Captured {
 public:
  explicit Captured(Session& session) : device_(session.settings().profiled ? &session.device() : nullptr) {
    if (device_ != nullptr) device_->profile(true);
  }
  ~Captured();
  Captured(const Captured&) = delete;
  Captured& operator=(const Captured&) = delete;

 private:
  Device* device_;
};

/// Whether SIGINT, SIGTERM or SIGHUP has arrived. The running work then ends soon, after writing its rows.
bool interrupted();
void install_signal_handlers();

}  // namespace feedrate
