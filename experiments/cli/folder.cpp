#include "experiments/cli/folder.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <map>

#include "common/clock.hpp"
#include "common/error.hpp"

namespace feedrate {
namespace {

namespace fs = std::filesystem;

/// Whether the folder's spec differs from the spec of its last run. Older rows do not record the spec.
bool spec_edited(const fs::path& directory, const std::vector<Json>& rows) {
  std::string last;
  for (const Json& row : rows) {
    if (row.value("kind", "") == "run") last = row.value("spec", "");
  }
  return !last.empty() && last != spec_hash(directory);
}

std::string difference_text(const std::string& name, const Json& there, const Json& here) {
  return fmt::format("{}: {} in the folder, {} now", name, there.dump(), here.dump());
}

/// The first leaf at which `here` differs from `there`, with its path. A setting that an older folder lacks is ignored.
std::string first_difference(const std::string& path, const Json& there, const Json& here) {
  const bool objects = there.is_object() && here.is_object();
  if (!objects && !(there.is_array() && here.is_array() && there.size() == here.size())) {
    return there == here ? "" : difference_text(path, there, here);
  }
  std::map<std::string, std::pair<Json, Json>> members;
  for (const auto& [key, value] : there.items()) members[key].first = value;
  for (const auto& [key, value] : here.items()) {
    if (path != "spec.run" || members.contains(key)) members[key].second = value;
  }
  for (const auto& [key, values] : members) {
    if (key == "description" || key == "name") continue;  // only for human readers
    const std::string member = fmt::format(fmt::runtime(objects ? "{}.{}" : "{}[{}]"), path, key);
    std::string found = first_difference(member, values.first, values.second);
    if (!found.empty()) return found;
  }
  return "";
}

/// The first difference between this invocation and the one that measured a results folder's rows, as
/// "name: 'there' in the folder, 'here' now"; empty if there is none. Rows of one folder are compared with each other,
/// so the spec with its settings, the device, the machine and the build must be the same. Keys that an older folder
/// lacks are ignored.
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
  for (const char* name : {"host", "cpu", "cores", "gpu", "gpu_uuid", "version", "revision", "build_type"}) {
    if (!environment.contains(name)) continue;
    const Json here = environment_here.value(name, Json());
    if (environment[name] != here) return difference_text(name, environment[name], here);
  }
  return "";
}

}  // namespace

namespace fs = std::filesystem;

void FolderOptions::add(CLI::App& command, const std::string& standard) {
  standard_spec = standard;
  command.add_option("spec", spec, "spec name (experiments/specs) or file; default " + standard_spec);
  command.add_option("--axis", axes, "name=values; replaces that axis of the spec; may be repeated")
      ->type_name("NAME=VALUES")
      ->take_all();
  command.add_option("--out", out, "results directory; default results/<time>-<spec>");
  command.add_option("--resume", resume, "resume in this results directory");
  command.add_flag("--resume-anyway", resume_anyway,
                   "resume even if the spec, settings, device, machine or build differ");
  command.add_flag("--dry-run", dry_run, "print what would be measured and the estimated time, without measuring");
}

Spec FolderOptions::load(CommonOptions& common, CLI::App& command) const {
  if (resuming() && !fs::is_regular_file(fs::path(resume) / "spec.json")) {
    throw BadInput("--resume", resume, "a results directory with a spec.json");
  }
  if (resume_anyway && !resuming()) throw BadInput("--resume-anyway: allowed only with --resume DIR");
  if (!out.empty() && resuming()) throw BadInput("--out", out, "no value if --resume is given");
  const fs::path file =
      spec.empty() && resuming() ? fs::path(resume) / "spec.json" : find_spec(spec.empty() ? standard_spec : spec);
  Spec loaded = load_spec(file, {axes});
  apply_run(loaded.document.value("run", Json::object()), file.string(), command);
  loaded.document["run"] = run_of(common.run);  // a resume needs the settings from the command line
  return loaded;
}

fs::path FolderOptions::directory(const std::string& name) const {
  if (resuming()) return resume;
  std::error_code none;
  if (out.empty()) {
    const std::string time = utc_now(true);
    fs::path folder = fs::path("results") / (time + "-" + name);
    for (int n = 2; fs::exists(folder, none); ++n) {  // another sweep started in the same second
      folder = fs::path("results") / fmt::format("{}.{}-{}", time, n, name);
    }
    return folder;
  }
  fs::path folder = out;
  if (!dry_run && fs::exists(folder / "rows.jsonl", none)) {
    throw BadInput("--out", folder.string(),
                   "a directory without rows; use --resume to continue a directory that has rows");
  }
  return folder;
}

Results FolderOptions::open(const fs::path& directory, const Spec& spec, Session& session) const {
  Results results(directory, spec.document, resuming());
  if (!resuming() || resume_anyway) return results;
  const Json there = load_spec(directory / "spec.json", {}).document;
  std::string found = difference_from(there, results.earlier(), spec.document, session.environment(),
                                      std::string(session.device().kind()));
  if (found.empty() && spec_edited(directory, results.earlier()))
    found = "spec.json: edited since the rows were measured";
  if (!found.empty()) {
    throw BadInput(
        fmt::format("--resume {}: new rows would be mixed with rows measured under other conditions. {} (use "
                    "--resume-anyway to mix them)",
                    directory.string(), found));
  }
  return results;
}

std::string resume_text(const std::string& command, const fs::path& directory) {
  const char* launcher =
      std::getenv("FEEDRATE_RESUME_WITH");  // the script that started this command and also makes reports
  return fmt::format("to resume: {} --resume {}", launcher != nullptr ? launcher : "feedrate " + command,
                     directory.string());
}

}  // namespace feedrate
