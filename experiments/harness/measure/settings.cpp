#include "experiments/harness/measure/settings.hpp"

namespace feedrate {

Json run_of(const RunSettings& settings) {
  Json json = Json::object();
  for_each_option(settings, [&](const char* name, const auto& value, const auto&...) { json[name] = value; });
  return json;
}

Json to_json(const RunSettings& settings) {
  Json json = {{"seconds", settings.seconds},
               {"warmup_seconds", settings.warmup_seconds},
               {"messages", settings.messages},
               {"seed", settings.seed},
               {"repetitions", settings.repetitions},
               {"pinned_threads", settings.pin_threads},
               {"until_precise", settings.precision.wanted}};
  if (settings.traced) json["traced"] = true;
  return json;
}

}  // namespace feedrate
