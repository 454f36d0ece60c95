#pragma once
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "common/device/device.hpp"
#include "experiments/harness/machine/machine_state.hpp"
#include "experiments/harness/measure/experiment.hpp"
#include "experiments/harness/measure/limit_readings.hpp"
#include "experiments/harness/measure/settings.hpp"
#include "experiments/harness/services/services.hpp"

namespace feedrate {

/// One invocation: an experiment on a device, the services that its points need, the limits once they are measured, and
/// the rows of what it measures.
class Session {
 public:
  /// `opened`: the device to work on, where that is none that `device` can name (a test's).
  Session(const std::string& experiment, const std::string& device, unsigned gpu, ServiceChoices services,
          std::string command, RunSettings settings, std::unique_ptr<Device> opened = nullptr);
  ~Session();

  const Kind& kind() const { return kind_; }
  Experiment& experiment() { return *experiment_; }
  Resolution resolve(const Values& values) { return experiment_->resolve(values); }
  Device& device() { return *device_; }
  const GpuSource& gpu() const { return gpu_source_; }
  unsigned gpu_index() const { return gpu_index_; }  ///< as open_device() counts
  const RunSettings& settings() const { return settings_; }
  /// Sets how cells are measured from now on; returns the earlier settings. Rows state what differs from the run's.
  RunSettings exchange_settings(RunSettings settings) { return std::exchange(settings_, std::move(settings)); }
  RunningServices& services() { return services_; }
  /// Host, GPU, versions, services once they are in use. Asked for once.
  const Json& environment();

  /// Reads the device's limits and those of these points, and `more`, in `limit_rounds` rounds; returns their rows.
  /// From then on they are read once more now and then, before a cell.
  std::vector<Json> measure_limits(std::span<const Resolution>, const LimitReadings::Add& more = {});
  /// The limits' rows, with all readings up to now.
  std::vector<Json> limit_rows() const;
  void add_limit_row(const Json& row);
  /// Medians of the readings up to now, by name, as far as they were measured.
  const Limits& limits() const { return limits_.values(); }
  /// How many readings of each these are.
  unsigned limit_rounds() const { return limits_.rounds(); }

  /// The row of this invocation: what all its other rows share. Once the limits are measured.
  Json run_row();
  const std::string& run_id() const { return run_id_; }
  /// Measures a resolved point once and makes its row; never throws for what goes wrong inside the cell.
  Json run_cell(const Resolution&, unsigned repetition, CellTimeline* timeline = nullptr);
  /// The row of a cell that never returned. May be called from another thread than the one that hangs.
  Json hung_row(const Resolution&, unsigned repetition, const std::string& reason) const;
  /// The row of a capacity search's answer, whose `identity` tells it from others of the same `params`.
  Json answer_row(const Json& params, const Json& identity, unsigned repetition) const;

 private:
  /// What every row begins with.
  Json row(const std::string& kind, const Json& params, const Json& identity, unsigned repetition) const;

  Kind kind_;
  RunSettings settings_;
  const Json run_settings_;
  RunningServices services_;
  std::string command_;
  std::unique_ptr<Device> device_;
  unsigned gpu_index_;
  GpuSource gpu_source_;
  LimitReadings limits_;
  Json environment_;
  std::string started_, run_id_;
  std::unique_ptr<Experiment> experiment_;
};

/// While it lives, an attached profiler captures, where the run's settings want that.
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

/// Set by SIGINT and SIGTERM: what runs ends soon, with its rows written.
bool interrupted();
void install_signal_handlers();

}  // namespace feedrate
