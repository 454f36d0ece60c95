#include <fmt/format.h>

#include "kernels/workload.hpp"
#include "variants/feeding/transfers/bounds.hpp"

namespace feedrate {
namespace {

constexpr auto kWithoutLimits = "pinned";

/// A transfer, with any non-default settings of its axes.
struct Candidate {
  std::string name;
  Values own;

  std::string text() const {
    std::string all = name;
    for (const auto& [axis, value] : own) all += fmt::format(" ({} {})", axis, text_of(value));
    return all;
  }
};

struct Chosen {
  Candidate candidate;
  std::string why;
};

Point with(Point point, const Values& own) {
  for (const auto& [axis, value] : own) point.own[axis] = value;
  return point;
}

/// The transfer with the shortest time for a batch, according to the limits. `lone`: only one batch is in flight, so
/// its latency counts instead of the rate.
Chosen choose(const BoundedPoint& bounded, const Limits& limits, const DeviceInfo& device) {
  const bool lone = bounded.point.producers * bounded.point.window <= bounded.point.batch;
  std::vector<std::pair<double, Candidate>> times;  // ns
  for (const auto& [name, entry] : Transfers::instance().entries()) {
    if (!entry.batch_time || entry.memory != HostMemory::pinned) continue;
    if (entry.why_unsupported && !entry.why_unsupported(device).empty()) continue;
    std::vector<Values> settings{{}};
    if (lone) settings.insert(settings.end(), entry.alone.begin(), entry.alone.end());
    for (const Values& own : settings) {
      const Point point = with(bounded.point, own);
      const auto batch_time = entry.batch_time({point, bounded.choices, bounded.in, bounded.out}, limits);
      if (batch_time) times.emplace_back(lone ? batch_time->lone_ns : batch_time->busy_ns, Candidate{name, own});
    }
  }
  if (times.empty()) return {{kWithoutLimits, {}}, "no limits of a GPU were measured here"};
  const auto best = std::ranges::min_element(times, {}, &std::pair<double, Candidate>::first);
  std::string others;
  for (const auto& [ns, candidate] : times) {
    if (&candidate == &best->second) continue;
    others += fmt::format("{}{} {:.2f}", others.empty() ? "" : ", ", candidate.text(), ns / 1e3);
  }
  return {best->second, fmt::format("by the limits {:.2f} us per batch {}; others: {}", best->first / 1e3,
                                    lone ? "if alone" : "back to back", others)};
}

/// A wrapper around another transfer, chosen at construction from the payload, the batch and this machine's limits.
class Auto final : public Transfer {
 public:
  explicit Auto(const TransferConfig& config) {
    Chosen chosen{{kWithoutLimits, {}}, "the point is not known"};
    if (config.point != nullptr) {
      const Point& point = *config.point;
      const BoundedPoint bounded{point, none_, sizeof(Header) + point.payload,
                                 sizeof(Header) + config.workload.result_bytes(point.payload)};
      chosen = choose(bounded, config.limits, config.device.info());
    }
    const Candidate& candidate = chosen.candidate;
    TransferConfig own = config;
    for (const auto& [axis, value] : candidate.own) own.own[axis] = value;
    made_ = Transfers::instance().get("--transfer", candidate.name).make(own);
    choices_ = made_->choices();
    for (const auto& [axis, value] : candidate.own) choices_[axis] = text_of(value);
    choices_["transfer"] = candidate.name;
    choices_["transfer-why"] = chosen.why;
  }
  bool submit(const Batch& batch) override { return made_->submit(batch); }
  std::optional<Batch> poll() override { return made_->poll(); }
  void flush() override { made_->flush(); }
  Choices choices() const override { return choices_; }

 private:
  Choices none_, choices_;
  std::unique_ptr<Transfer> made_;
};

/// The chosen settings that differ from the defaults.
Values own_of(const TransferEntry& entry, const Choices& choices) {
  Values own;
  for (const Values& settings : entry.alone) {
    for (const auto& [axis, value] : settings) {
      const auto chosen = choices.find(axis);
      if (chosen != choices.end() && chosen->second == text_of(value)) own[axis] = value;
    }
  }
  return own;
}

/// Maximum number of batches in flight, for any transfer that may be chosen with its own axes at their defaults.
unsigned max_depth(const Point& point) {
  unsigned most = 1;
  for (const auto& [name, entry] : Transfers::instance().entries()) {
    if (entry.batch_time) most = std::max(most, entry.depth(point));
  }
  return most;
}

const TransferRegistration registered(
    "auto", {.description = "the transfer that moves this payload and batch fastest by the machine's limits",
             .memory = HostMemory::pinned,
             .depth = max_depth,
             .make = make_transfer<Auto>,
             .bounds = [](const BoundedPoint& bounded, Bounds& bounds) {
               const auto chosen = bounded.choices.find("transfer");
               if (chosen == bounded.choices.end()) return;
               const auto& entry = Transfers::instance().get("--transfer", chosen->second);
               if (!entry.bounds) return;
               const Point point = with(bounded.point, own_of(entry, bounded.choices));
               entry.bounds({point, bounded.choices, bounded.in, bounded.out}, bounds);
             }});

}  // namespace
}  // namespace feedrate
