#include "experiments/harness/measure/settings.hpp"

namespace feedrate {
namespace {

struct ToJson {
  Json& json;
  void seconds(const char* name, double value, double, const char*) const { json[name] = value; }
  void count(const char* name, std::uint64_t value, std::uint64_t, std::uint64_t, const char*) const {
    json[name] = value;
  }
  void share(const char* name, double value, const char*) const { json[name] = value; }
  void word(const char* name, const std::string& value, std::initializer_list<const char*>, const char*) const {
    json[name] = value;
  }
  void flag(const char* name, bool value, const char*) const { json[name] = value; }
};

}  // namespace

Json run_of(const RunSettings& settings) {
  Json json = Json::object();
  for_each_option(settings, ToJson{json});
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
