#include "experiments/cli/folder.hpp"

#include <fmt/format.h>

#include <cstdlib>

#include "common/clock.hpp"
#include "common/error.hpp"
#include "experiments/harness/sweep/resume.hpp"

namespace feedrate {

namespace fs = std::filesystem;
namespace {

/// Whether the folder's spec differs from that of its last run. Older rows do not record the spec.
bool spec_edited(const fs::path& directory, const std::vector<Json>& rows) {
  std::string last;
  for (const Json& row : rows) {
    if (row.value("kind", "") == "run") last = row.value("spec", "");
  }
  return !last.empty() && last != spec_hash(directory);
}

}  // namespace

void FolderOptions::add(CLI::App& command, const std::string& standard_spec) {
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
  const fs::path file = spec.empty() ? fs::path(resume) / "spec.json" : find_spec(spec);
  Spec loaded = load_spec(file, axes);
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
    throw BadInput(fmt::format(
        "--resume {}: new rows would be mixed with rows of other conditions. {} (use --resume-anyway to mix them)",
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
