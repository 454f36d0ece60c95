#include "experiments/feeding/answer.hpp"
#include "experiments/feeding/feeding.hpp"
#include "experiments/harness/load/open_load.hpp"
#include "experiments/harness/services/services.hpp"
#include "variants/feeding/queue.hpp"
#include "variants/feeding/transfer.hpp"

namespace feedrate {
namespace {

Json members() {
  Json queues = Json::array(), transfers = Json::array(), workloads = Json::array();
  for (const auto& [name, entry] : Queues::instance().entries()) {
    queues.push_back({{"name", name},
                      {"description", entry.description},
                      {"delivery", text_of(entry.guarantee.delivery)},
                      {"order", entry.guarantee.order},
                      {"durable", entry.guarantee.durable},
                      {"works", entry.works},
                      {"uses_transfer", entry.uses_transfer},
                      {"external_worker", entry.workers.has_value()},
                      {"unavailable", ServiceChoices{}.unavailable_reason(entry.service)},
                      {"axes", names_of(entry.axes)}});
  }
  const DeviceInfo device = describe_device("auto");
  for (const auto& [name, entry] : Transfers::instance().entries()) {
    transfers.push_back({{"name", name},
                         {"description", entry.description},
                         {"memory", entry.memory == HostMemory::pinned ? "pinned" : "pageable"},
                         {"unavailable", entry.why_unsupported ? entry.why_unsupported(device) : ""},
                         {"axes", names_of(entry.axes)}});
  }
  for (const auto& [name, entry] : Workloads::instance().entries()) {
    workloads.push_back(
        {{"name", name}, {"description", entry.description}, {"unavailable", ""}, {"axes", names_of(entry.axes)}});
  }
  return {{"queues", queues}, {"transfers", transfers}, {"workloads", workloads}};
}

void name_limits(LimitList& limits) {
  for (const auto& [name, entry] : Queues::instance().entries()) {
    if (entry.limits) entry.limits(limits);
  }
}

std::vector<AxisValues> search(const Values& values) {
  const Point point = point_of(values);
  const auto& queue = Queues::instance().get("--queue", point.queue);
  std::vector<AxisValues> own = queue.search;
  if (queue.uses_transfer && point.transfer != kNoTransfer) {
    const auto& more = Transfers::instance().get("--transfer", point.transfer).search;
    own.insert(own.end(), more.begin(), more.end());
  }
  return own;
}

const ExperimentRegistration registered(
    kStandardExperiment,
    {.description = "how messages get to the GPU and results back",
     .axes = feeding_axes,
     .figures = {{"messages_per_second", "msg/s", Better::higher, false, true, "verified messages"},
                 {"bytes_per_second", "B/s", Better::higher, false, true, "payload bytes in one direction"},
                 {"latency_ns", "ns", Better::lower, true, true,
                  "from publish until the result is verified; in an open load, from when the message was due"},
                 {"service_ns", "ns", Better::lower, true, false,
                  "open load: from publish until the result is verified"},
                 {"send_lag_ns", "ns", Better::lower, true, false,
                  "open load: from when a message was due until it was published"}},
     .variant = {"queue", "transfer"},
     .shown = {"payload", "batch", "window"},
     .rate = "messages_per_second",
     .time = "latency_ns",
     .make = [](Session& session) { return std::make_unique<Feeding>(session); },
     .threads =
         [](const Values& values) {
           const Point point = point_of(values);
           const bool served = point.device == "cpu" && Queues::instance().get("--queue", point.queue).resident;
           return 2 * point.producers + point.workers + (served ? 1 : 0);
         },
     .terminal = {[] { return std::make_unique<Answer>(); }, feeding_lines},
     .searching = {.settings = {{"window", {"16", "64", "256", "1024", "4096", "16384"}},
                                {"batch", {"1", "4", "16", "64", "256", "1024"}},
                                {"producers", {"1", "2", "3", "4", "6", "8"}}},
                   .members = search,
                   .load = offered_load()},
     .listing = {members, name_limits}});

}  // namespace
}  // namespace feedrate
