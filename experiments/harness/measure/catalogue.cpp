#include "experiments/harness/measure/catalogue.hpp"

#include "common/device/device.hpp"
#include "common/service.hpp"
#include "experiments/harness/limits/device_limits.hpp"
#include "experiments/harness/measure/experiment.hpp"

namespace feedrate {
namespace {

Json json_of(const AxisTable::Entry& entry, const std::string& experiment) {
  const Axis& axis = entry.axis;
  Json json{{"experiment", experiment}, {"name", axis.name},        {"key", axis.key},
            {"owners", entry.owners},   {"description", axis.help}, {"default", to_json(axis.standard)}};
  if (axis.words) {
    json["kind"] = "word";
    json["values"] = axis.words();
  } else if (axis.free_text) {
    json["kind"] = "text";
  } else {
    json["kind"] = "number";
    json["least"] = axis.least;
    json["most"] = axis.most;
  }
  return json;
}

Json json_of(const Figure& figure) {
  Json json{{"name", figure.name},
            {"unit", figure.unit},
            {"better", figure.better == Better::higher ? "higher" : "lower"},
            {"distribution", figure.distribution},
            {"headline", figure.headline},
            {"description", figure.description}};
  json["unstable_from"] = figure.distribution ? Json{{"p50", kUnstable}, {"p99", kUnstableTail}} : Json(kUnstable);
  return json;
}

Json devices() {
  const std::string no_cuda = cuda_unavailable();
  const std::string gpu = no_cuda.empty() ? describe_device("cuda").name : "NVIDIA GPU";
  return Json::array({{{"name", "cpu"}, {"description", cpu_model()}, {"unavailable", ""}},
                      {{"name", "cuda"}, {"description", gpu}, {"unavailable", no_cuda}}});
}

/// Lists the limits without measuring them.
Json limits() {
  LimitList named(false);
  name_device_limits(named);
  add_limits_of_all_gpus(named, 1);
  for (const auto& [name, entry] : Services::instance().entries()) entry.make({})->add_limits(named);
  for (const auto& [name, entry] : Experiments::instance().entries()) entry.listing.limits(named);
  Json all = Json::array();
  for (const Limit& limit : named.limits()) {
    all.push_back(
        {{"name", limit.name}, {"unit", text_of(limit.quantity)}, {"scope", limit.scope.of}, {"method", limit.method}});
  }
  return all;
}

}  // namespace

Json catalogue() {
  Json all{{"schema", 3},
           {"version", FEEDRATE_VERSION},
           {"units", {{"ns", "time"}}},
           {"experiments", Json::array()},
           {"axes", Json::array()},
           {"devices", devices()},
           {"limits", limits()}};
  for (const auto& [name, entry] : Experiments::instance().entries()) {
    const ExperimentInfo info(name);
    Json own = Json::array(), figures = Json::array();
    for (const auto& each : info.axes().entries()) {
      all["axes"].push_back(json_of(each, name));
      if (each.owners.empty()) own.push_back(each.axis.name);
    }
    for (const Figure& figure : entry.figures) {
      figures.push_back(json_of(figure));
      if (!all["units"].contains(figure.unit)) all["units"][figure.unit] = "si";
    }
    all["experiments"].push_back(
        {{"name", name},
         {"description", entry.description},
         {"variant", entry.variant},
         {"rate", entry.rate},
         {"time", entry.time},
         {"offered_load", entry.searching.load ? Json(entry.searching.load->rate_axis) : Json()},
         {"figures", figures},
         {"axes", own}});
    const Json members = entry.listing.members();
    for (const auto& [kind_of_member, list] : members.items()) all[kind_of_member] = list;
  }
  return all;
}

}  // namespace feedrate
