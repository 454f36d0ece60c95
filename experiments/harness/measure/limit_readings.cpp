#include "experiments/harness/measure/limit_readings.hpp"

#include <utility>

#include "common/clock.hpp"
#include "experiments/harness/measure/experiment.hpp"

namespace feedrate {

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
