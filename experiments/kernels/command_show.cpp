#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>

#include "common/error.hpp"
#include "experiments/cli/commands.hpp"
#include "experiments/harness/measure/chosen.hpp"
#include "experiments/harness/measure/columns.hpp"
#include "experiments/harness/measure/experiment.hpp"
#include "experiments/harness/measure/statistics.hpp"
#include "experiments/harness/sweep/recorder.hpp"
#include "kernels/ladder/ladder.hpp"

namespace feedrate::kernels {
namespace {

/// What rows say about the rungs of a ladder, by setting: the values of all axes but the rung and what it was timed
/// with. Rows of a rung that was timed alone count only if the setting has no others of it, disturbed ones only if
/// there are no others, and those measured afresh count alone, as in reports.
class Measured {
 public:
  struct Rung {
    ChosenValues rates, shares, of_limit;
  };
  struct Setting {
    std::map<std::string, Rung> in_turn, alone;
    /// The rows in which the rung took turns, or else those in which it was alone.
    const std::map<std::string, Rung>& with(const std::string& rung) const {
      return in_turn.contains(rung) ? in_turn : alone;
    }
  };

  /// Throws BadInput if the file cannot be read, or is damaged.
  Measured(const std::string& ladder, const std::filesystem::path& place) {
    std::filesystem::path file = place;
    if (is_directory(place)) file = exists(place / "rows.jsonl") ? place / "rows.jsonl" : place / "rows.jsonl.xz";
    std::size_t number = 0;
    for (const std::string& line : read_lines(file).whole) {
      ++number;
      try {
        add(ladder, Json::parse(line));
      } catch (const Json::exception&) {
        throw BadInput("--rows", fmt::format("{}, line {}", file.string(), number),
                       "rows that `feedrate validate` accepts");
      }
    }
  }

  /// Lines for a rung: its rate in each setting, and the gain over the rung before if that was measured there too.
  std::vector<std::string> lines(const std::string& rung, const std::string& before) const {
    static const ExperimentInfo kInfo("kernels");
    std::vector<std::string> lines;
    for (const auto& [axes, setting] : settings_) {
      const auto& rungs = setting.with(rung);
      if (!rungs.contains(rung)) continue;
      const Rung& found = rungs.at(rung);
      const double rate = median_of(found.rates.counted());
      std::string line = kInfo.text("operations_per_second", rate);
      if (const auto last = rungs.find(before); last != rungs.end()) {
        line += fmt::format(", {:.2f} × {}", rate / median_of(last->second.rates.counted()), before);
      }
      const auto share = [&](const ChosenValues& values, const char* of) {
        if (!values.counted().empty()) line += fmt::format(", {:.0f} % of {}", 100 * median_of(values.counted()), of);
      };
      share(found.shares, "the best peer");
      share(found.of_limit, "the limit");
      const Values values = kInfo.axes().values(axes);
      lines.push_back(
          line + " (" +
          fmt::format("n = {}{};", found.rates.counted().size(), found.rates.disturbed() ? ", all disturbed" : "") +
          kInfo.settings(values, {"rung", "against", "ladder"}) + ")");
    }
    return lines;
  }
  bool empty() const { return settings_.empty(); }

 private:
  /// Throws Json::exception if the row lacks a value, or a value has the wrong type.
  void add(const std::string& ladder, const Json& row) {
    if (row.at("kind") != "cell" || row.at("experiment") != "kernels") return;
    Json params = row.at("params");
    const bool disturbed = row.at("cause") == "disturbed";
    if ((row.at("status") != "ok" && !disturbed) || params.at("ladder") != ladder) return;
    const std::string rung = params.at("rung");
    const bool alone = params.at("against") == "alone";
    for (const char* name : {"rung", "against", "ladder"}) params.erase(name);
    Setting& setting = settings_[params];
    Rung& found = (alone ? setting.alone : setting.in_turn)[rung];
    const Json& figures = row.at("figures");
    const bool afresh = is_afresh(row);
    found.rates.add(figures.at("operations_per_second"), afresh, disturbed);
    if (figures.contains("share_of_best_peer")) found.shares.add(figures.at("share_of_best_peer"), afresh, disturbed);
    const Json::json_pointer ratio("/bounds/operations_per_second/ratio");
    if (row.contains(ratio)) found.of_limit.add(row.at(ratio), afresh, disturbed);
  }

  std::map<Json, Setting> settings_;
};

int show(const std::string& name, const std::string& place) {
  const ladder::LadderEntry& entry = ladder::Ladders::instance().get("LADDER", name);
  std::optional<Measured> measured;
  if (!place.empty()) measured.emplace(name, place);
  if (measured && measured->empty()) throw BadInput("--rows", place, "rows of the ladder " + name);
  fmt::print("{}: {}\n", name, entry.description);
  std::string before, device;
  for (const ladder::RungInfo& rung : entry.rungs()) {
    if (rung.text.device != device || rung.text.is_peer()) before.clear();
    device = rung.text.device;
    const std::string step = rung.text.is_peer() ? "peer" : fmt::format("{:>2}", rung.text.step);
    fmt::print("\n{} {} ({})\n", step, rung.name, rung.text.device);
    const auto print = [](const char* what, const std::string& text) {
      if (!text.empty()) fmt::print("   {}\n", wrapped(fmt::format("{}: {}", what, text), 5, kColumns - 3));
    };
    print("changes", rung.text.changes);
    print("why it pays", rung.text.reason);
    print("prediction", rung.text.prediction);
    print("published", rung.text.measured);
    print("made for", rung.text.design);
    if (!rung.text.repeats) print("note", "its results differ from run to run in the last bits");
    print("unavailable", rung.unavailable());
    if (measured) {
      for (const std::string& line : measured->lines(rung.name, before)) print("measured", line);
    }
    before = rung.name;
  }
  return 0;
}

void add_kernels(Program& program) {
  CLI::App& command = *program.app.add_subcommand("kernels", "explain the ladders of kernels");
  command.require_subcommand(1);
  CLI::App& shown = *command.add_subcommand("show", "print a ladder: what each rung changes, and why that pays");
  const auto name = std::make_shared<std::string>(), rows = std::make_shared<std::string>();
  shown.add_option("LADDER", *name, "the ladder: " + ladder::Ladders::instance().names())->required();
  shown.add_option("--rows", *rows, "folder or file of a sweep's rows: also print each rung's rate and gain");
  program.on_choice(shown, [name, rows] { return show(*name, *rows); });
}

const CommandRegistration registered("kernels", add_kernels);

}  // namespace
}  // namespace feedrate::kernels
