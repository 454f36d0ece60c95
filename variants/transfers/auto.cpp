#include <fmt/format.h>

#include "kernels/workload.hpp"
#include "variants/transfers/floors.hpp"

namespace feedrate {
namespace {

constexpr auto kWithoutFloors = "pinned";

struct Chosen {
  std::string name;
  std::string why;
};

/// Nanoseconds that each transfer that is possible here takes for a batch, by the floors.
std::map<std::string, double> times_of(const Bounded& bounded, const Floors& floors, bool lone, Device& device) {
  std::map<std::string, double> times;
  for (const auto& [name, entry] : Transfers::instance().entries()) {
    if (!entry.effort || entry.memory != HostMemory::pinned) continue;
    if (entry.refuse && !entry.refuse(device).empty()) continue;
    if (const auto effort = entry.effort(bounded, floors)) times[name] = lone ? effort->lone_ns : effort->busy_ns;
  }
  return times;
}

/// The one that takes least. `lone`: a batch is alone under way, so its own time counts, not how many fit into a
/// second.
Chosen choose(const Bounded& bounded, const Floors& floors, Device& device) {
  const Point& point = bounded.point;
  const bool lone = point.producers * point.window <= point.batch;
  const auto times = times_of(bounded, floors, lone, device);
  if (times.empty()) return {kWithoutFloors, "no floors of a GPU were measured here"};
  const auto less = [](const auto& a, const auto& b) { return a.second < b.second; };
  const auto best = std::min_element(times.begin(), times.end(), less);
  std::string others;
  for (const auto& [name, ns] : times) {
    if (name != best->first) others += fmt::format("{}{} {:.2f}", others.empty() ? "" : ", ", name, ns / 1e3);
  }
  return {best->first, fmt::format("by the floors {:.2f} us a batch {}; others: {}", best->second / 1e3,
                                   lone ? "that is alone" : "behind the one before it", others)};
}

/// Another transfer, chosen when it is made: by payload and batch, from the floors of this machine.
class Auto final : public Transfer {
 public:
  explicit Auto(const TransferConfig& config) {
    Chosen chosen{kWithoutFloors, "nothing is known of the point"};
    if (config.point != nullptr) {
      const Point& point = *config.point;
      const Bounded bounded{point, none_, sizeof(Header) + point.payload,
                            sizeof(Header) + config.workload.result_bytes(point.payload)};
      chosen = choose(bounded, config.floors, config.device);
    }
    made_ = Transfers::instance().get("--transfer", chosen.name).make(config);
    choices_ = made_->choices();
    choices_["transfer"] = chosen.name;
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

/// The one that will be chosen has its own axes at their standard values, and no more batches under way than this.
unsigned most_depth(const Point& point) {
  unsigned most = 1;
  for (const auto& [name, entry] : Transfers::instance().entries()) {
    if (entry.effort) most = std::max(most, entry.depth(point));
  }
  return most;
}

const TransferRegistration registered(
    "auto", {.description = "the transfer that moves this payload and batch fastest by the machine's floors",
             .memory = HostMemory::pinned,
             .depth = most_depth,
             .make = make_transfer<Auto>,
             .limits = [](const Bounded& bounded, Limits& limits) {
               const auto chosen = bounded.choices.find("transfer");
               if (chosen == bounded.choices.end()) return;
               const auto& entry = Transfers::instance().get("--transfer", chosen->second);
               if (entry.limits) entry.limits(bounded, limits);
             }});

}  // namespace
}  // namespace feedrate
