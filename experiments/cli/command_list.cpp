#include <fmt/format.h>

#include "common/redis/private_server.hpp"
#include "experiments/feeding/axes.hpp"
#include "experiments/cli/commands.hpp"
#include "variants/queue.hpp"
#include "variants/transfer.hpp"

namespace feedrate {
namespace {

Json queues() {
  const bool have_redis = !redis::find_redis_server().empty();
  Json all = Json::array();
  for (const auto& [name, entry] : Queues::instance().entries()) {
    Json one{{"name", name},
             {"description", entry.description},
             {"delivery", entry.delivery},
             {"order", entry.order},
             {"durable", entry.durable},
             {"uses_transfer", entry.uses_transfer},
             {"external_worker", static_cast<bool>(entry.make_broker)},
             {"unavailable", ""}};
    if (entry.uses_redis && !have_redis) one["unavailable"] = "no redis-server on the PATH; give --redis URL";
    all.push_back(std::move(one));
  }
  return all;
}

Json everything() {
  Json transfers = Json::array(), workloads = Json::array(), axes_json = Json::array();
  for (const auto& [name, entry] : Transfers::instance().entries()) {
    transfers.push_back({{"name", name},
                         {"description", entry.description},
                         {"memory", entry.memory == HostMemory::pinned ? "pinned" : "pageable"},
                         {"unavailable", ""}});
  }
  for (const auto& [name, entry] : Workloads::instance().entries()) {
    workloads.push_back({{"name", name}, {"description", entry.description}, {"unavailable", ""}});
  }
  for (const Axis& a : axes()) axes_json.push_back({{"name", a.name}, {"description", a.help}});
  const std::string no_cuda = cuda_unavailable();
  const std::string gpu = no_cuda.empty() ? open_device("cuda")->info().name : "NVIDIA GPU";
  const Json devices = Json::array({{{"name", "cpu"}, {"description", cpu_model()}, {"unavailable", ""}},
                                    {{"name", "cuda"}, {"description", gpu}, {"unavailable", no_cuda}}});
  return {{"queues", queues()},
          {"transfers", transfers},
          {"workloads", workloads},
          {"devices", devices},
          {"axes", axes_json}};
}

int list(bool json) {
  const Json all = everything();
  if (json) {
    fmt::print("{}\n", all.dump(2));
    return 0;
  }
  for (const char* kind : {"queues", "transfers", "workloads", "devices", "axes"}) {
    fmt::print("{}\n", kind);
    for (const Json& one : all[kind]) {
      fmt::print("  {:<15} {}\n", one["name"].get<std::string>(), one["description"].get<std::string>());
      if (one.contains("delivery")) {
        fmt::print("  {:<15}   delivery {}; order {}{}\n", "", one["delivery"].get<std::string>(),
                   one["order"].get<std::string>(), one["durable"].get<bool>() ? "; durable" : "");
      }
      if (const auto reason = one.value("unavailable", ""); !reason.empty())
        fmt::print("  {:<15}   unavailable: {}\n", "", reason);
    }
  }
  return 0;
}

}  // namespace

void add_list(CLI::App& app, Action& action) {
  auto json = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand("list", "queues, transfers, workloads, devices and axes");
  command->add_flag("--json", *json, "as JSON");
  command->callback([json, &action] { action = [json] { return list(*json); }; });
}

}  // namespace feedrate
