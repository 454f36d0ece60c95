#include "experiments/harness/measure/session.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <csignal>
#include <utility>

#include "common/clock.hpp"
#include "common/error.hpp"
#include "common/hash.hpp"
#include "common/nvtx_range.hpp"
#include "experiments/harness/limits/device_limits.hpp"
#include "experiments/harness/machine/environment.hpp"
#include "experiments/harness/machine/gpu_sample.hpp"
#include "experiments/harness/measure/experiment.hpp"

namespace feedrate {
namespace {

volatile std::sig_atomic_t signalled = 0;

/// Unique ID of a run, from the command, the process and the time.
std::string id_of_run(const std::string& command) {
  return fmt::format("{:016x}", hash64(fmt::format("{} {} {}", command, getpid(), now_ns())));
}

void put(const Measurement& measured, Json& row) {
  row["status"] = text_of(measured.status);
  row["cause"] = text_of(measured.cause);
  row["reason"] = measured.reason;
  if (measured.status == Status::skipped) return;
  for (const Flag flag : measured.flags) row["flags"].push_back(text_of(flag));
  if (!measured.chosen.empty()) row["chosen"] = measured.chosen;
  if (!measured.details.empty()) row["details"] = measured.details;
  row["cost"] = measured.cost;
  row["cost"]["host_threads"] = row["cost"]["spinning_threads"] = measured.host_threads;
  row["cost"]["sms"] = measured.sms;
  if (measured.status == Status::failed) return;
  Json figures = Json::object(), bounds = Json::object();
  for (const auto& [name, value] : measured.numbers) figures[name] = value;
  for (const auto& [name, histogram] : measured.histograms) figures[name] = to_json(histogram.first, histogram.second);
  for (const auto& [name, bound] : measured.bounds) {
    bounds[name] = {{"bound", to_json(bound.expression)}, {"value", bound.value}, {"ratio", bound.ratio}};
  }
  if (!figures.empty()) row["figures"] = std::move(figures);
  if (!bounds.empty()) row["bounds"] = std::move(bounds);
  if (measured.machine) row["machine"] = to_json(*measured.machine);
  if (!measured.gpu_use.is_null()) row["gpu_use"] = measured.gpu_use;
}

}  // namespace

bool interrupted() { return signalled != 0; }

void install_signal_handlers() {
  struct sigaction action {};
  action.sa_handler = [](int) { signalled = 1; };
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGHUP, &action, nullptr);
}

Session::Session(const std::string& experiment, const std::string& device, unsigned gpu, ServiceChoices services,
                 std::string command, RunSettings settings, std::unique_ptr<Device> opened)
    : info_(experiment),
      settings_(std::move(settings)),
      run_settings_(to_json(settings_)),
      services_(std::move(services)),
      command_(std::move(command)),
      device_(opened ? std::move(opened) : open_device(device, gpu)),
      gpu_index_(gpu),
      gpu_source_(nvml_source(device_->info().pci_bus)),
      started_(utc_now()),
      run_id_(id_of_run(command_)),
      experiment_(info_.entry().make(*this)) {}

Session::~Session() = default;

const Json& Session::environment() {
  if (!environment_.empty()) return environment_;
  environment_ = environment_of(*device_, command_);
  environment_["services"] = services_.states();
  return environment_;
}

std::vector<Json> Session::measure_limits(std::span<const Resolution> points, const LimitReadings::Add& more) {
  limits_.read(
      [this, more, kept = std::vector<Resolution>(points.begin(), points.end())](LimitList& list) {
        add_device_limits(list, *device_);
        experiment_->add_limits(list, kept);
        if (more) more(list);
      },
      settings_.limit_rounds);
  return limit_rows();
}

std::vector<Json> Session::limit_rows() const { return limits_.rows(run_id_, device_->kind()); }

void Session::add_limit_row(const Json& row) {
  limits_.know(row.at("limit").at("name").get<std::string>(), row["limit"]["value"]);
}

Json Session::run_row() {
  return {{"schema", kRowSchemaVersion},
          {"kind", "run"},
          {"id", run_id_},
          {"experiment", info_.name()},
          {"settings", run_settings_},
          {"environment", environment()},
          {"limits", limits_.values()},
          {"time", {{"started", started_}}}};
}

Json Session::row(const std::string& kind, const Json& params, const Json& identity, unsigned repetition) const {
  Json row{{"schema", kRowSchemaVersion},
           {"kind", kind},
           {"experiment", info_.name()},
           {"run", run_id_},
           {"id", row_id(identity, repetition)},
           {"repetition", repetition},
           {"status", "ok"},
           {"cause", ""},
           {"reason", ""},
           {"params", params},
           {"time", {{"started", utc_now()}, {"duration_seconds", 0.0}}}};
  const Json now = to_json(settings_);
  for (const auto& [name, value] : now.items()) {
    if (value != run_settings_.value(name, Json())) row["settings"][name] = value;
  }
  return row;
}

Json Session::answer_row(const Json& params, const Json& identity, unsigned repetition) const {
  return row("capacity", params, identity, repetition);
}

Json Session::hung_row(const Resolution& cell, unsigned repetition, const std::string& reason) const {
  const Json params = info_.axes().params(cell.values);
  Json hung = row("cell", params, params, repetition);
  hung["status"] = text_of(Status::failed);
  hung["cause"] = text_of(Cause::hung);
  hung["reason"] = reason;
  return hung;
}

Measurement Session::measure(const Resolution& cell, const Repetition& repetition) {
  Measurement measured;
  if (!cell.impossible.empty()) {
    measured.judge(Status::skipped, Cause::impossible, cell.impossible);
    return measured;
  }
  try {
    measured = experiment_->measure(cell, repetition);
  } catch (const std::exception& error) {  // from the setup of the cell: memory, connections
    measured = {};
    measured.judge(Status::failed, Cause::error, error.what());
  }
  if (measured.status == Status::failed) return measured;
  std::vector<std::string> disturbed;
  for (Disturbance& each : measured.machine ? disturbances(*measured.machine) : std::vector<Disturbance>{}) {
    if (each.excludes) disturbed.push_back(std::move(each.text));
  }
  if (interrupted()) {
    measured.judge(Status::invalid, Cause::interrupted, "interrupted");
  } else if (!settings_.keep_disturbed && !disturbed.empty()) {
    measured.judge(Status::invalid, Cause::disturbed, fmt::format("disturbed: {}", fmt::join(disturbed, "; ")));
  }
  return measured;
}

Json Session::cell_row(const Resolution& cell, unsigned repetition, Measurement measured,
                       const CellStart& start) const {
  const Json params = info_.axes().params(cell.values);
  Json made = row("cell", params, params, repetition);
  if (limits_.rounds() != 0) made["limit_rounds"] = limits_.rounds();
  set_bounds(info_.entry().figures, limits_.values(), measured);
  put(measured, made);
  made["time"]["started"] = start.text;
  made["time"]["duration_seconds"] = static_cast<double>(now_ns() - start.ns) / 1e9;
  return made;
}

Json Session::run_cell(const Resolution& cell, unsigned repetition, CellTimeline* timeline) {
  if (cell.impossible.empty()) limits_.read_if_due();
  const CellStart start;
  const NvtxRange cell_range(
      fmt::format("cell {} {}", info_.variant(cell.values), row_id(info_.axes().params(cell.values), repetition)));
  const NvtxRange repetition_range(fmt::format("repetition {}", repetition));
  return cell_row(cell, repetition, measure(cell, {repetition, timeline}), start);
}

Captured::~Captured() {
  try {
    if (device_ != nullptr) device_->profile(false);
  } catch (const Failure& failure) {
    spdlog::warn("{}", failure.what());
  }
}

void LimitReadings::read_once() {
  const auto start = now_ns();
  list_.begin_round();
  add_(list_);
  Limits read;
  for (const Limit& limit : list_.limits()) read.emplace(limit.name, limit.median());
  for (const auto& [name, value] : read) values_[name] = value;
  ++rounds_;
  read_ns_ = now_ns();
  round_took_ns_ = read_ns_ - start;
}

void LimitReadings::read(Add add, unsigned rounds) {
  add_ = std::move(add);
  while (rounds_ < rounds) read_once();
}

void LimitReadings::read_if_due() {
  constexpr std::uint64_t kShare = 20;  // rounds take at most a twentieth of the run's time
  if (rounds_ != 0 && now_ns() - read_ns_ > kShare * round_took_ns_) read_once();
}

Json to_json(const Scope& scope) {
  Json json{{"of", scope.of}};
  if (!scope.which.empty()) json["which"] = scope.which;
  return json;
}

std::vector<Json> LimitReadings::rows(const std::string& run_id, std::string_view device) const {
  std::vector<Json> rows;
  for (const Limit& limit : list_.limits()) {
    const Json identity{{"limit", limit.name}, {"scope", to_json(limit.scope)}, {"device", device}};
    rows.push_back({{"schema", kRowSchemaVersion},
                    {"kind", "limit"},
                    {"run", run_id},
                    {"id", row_id(identity, 0)},
                    {"status", "ok"},
                    {"reason", ""},
                    {"limit",
                     {{"name", limit.name},
                      {"unit", text_of(limit.quantity)},
                      {"scope", to_json(limit.scope)},
                      {"value", limit.median()},
                      {"least", limit.least()},
                      {"greatest", limit.greatest()},
                      {"readings", limit.readings},
                      {"method", limit.method}}},
                    {"device", device},
                    {"time", {{"started", limit.started}, {"duration_seconds", limit.seconds}}}});
  }
  return rows;
}

}  // namespace feedrate
