#include "experiments/harness/sweep/resume.hpp"

#include <fmt/format.h>

#include <set>

namespace feedrate {
namespace {

std::string difference_text(const std::string& name, const Json& there, const Json& here) {
  return fmt::format("{}: {} in the folder, {} now", name, there.dump(), here.dump());
}

/// The first leaf in which `here` differs from `there`, with its path. A setting that an older folder lacks is ignored.
std::string first_difference(const std::string& path, const Json& there, const Json& here) {
  if (there.is_object() && here.is_object()) {
    std::set<std::string> keys;
    for (const auto& [key, value] : there.items()) keys.insert(key);
    if (path != "spec.run") {
      for (const auto& [key, value] : here.items()) keys.insert(key);
    }
    keys.erase("description");  // descriptions and names are only for people
    keys.erase("name");
    for (const std::string& key : keys) {
      std::string found =
          first_difference(fmt::format("{}.{}", path, key), there.value(key, Json()), here.value(key, Json()));
      if (!found.empty()) return found;
    }
    return "";
  }
  if (there.is_array() && here.is_array() && there.size() == here.size()) {
    for (std::size_t i = 0; i < there.size(); ++i) {
      std::string found = first_difference(fmt::format("{}[{}]", path, i), there[i], here[i]);
      if (!found.empty()) return found;
    }
    return "";
  }
  return there == here ? "" : difference_text(path, there, here);
}

}  // namespace

std::string difference_from(const Json& spec_there, const std::vector<Json>& rows_there, const Json& spec_here,
                            const Json& environment_here, const std::string& device_here) {
  if (std::string found = first_difference("spec", spec_there, spec_here); !found.empty() || rows_there.empty())
    return found;
  Json device, environment = Json::object();
  for (const Json& row : rows_there) {
    if (row.value("kind", "") == "run") environment = row.value("environment", Json::object());
    device = row.value("device", row.value("params", Json::object()).value("device", device));  // in a limit or a cell
  }
  if (device.is_string() && device != device_here) return difference_text("device", device, device_here);
  for (const char* name : {"host", "cpu", "cores", "gpu", "version", "revision", "build_type"}) {
    if (!environment.contains(name)) continue;
    const Json here = environment_here.value(name, Json());
    if (environment[name] != here) return difference_text(name, environment[name], here);
  }
  return "";
}

}  // namespace feedrate
