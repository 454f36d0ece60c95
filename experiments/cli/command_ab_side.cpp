#include <algorithm>
#include <iostream>
#include <memory>

#include "experiments/cli/commands.hpp"
#include "experiments/cli/folder.hpp"
#include "experiments/cli/options.hpp"
#include "experiments/harness/sweep/ab.hpp"
#include "experiments/harness/sweep/sliced_cell.hpp"
#include "experiments/harness/sweep/sweep.hpp"

namespace feedrate {
namespace {

struct SideOptions {
  CommonOptions common;
  FolderOptions folder;
};

/// One side's process. It answers requests on stdin, one per line:
///   {"limits": rows}                               first; rows of limits that the other side measured, or empty
///       → {"version", "device", "points", "params", "variants", "limits"}
///   {"point", "start", "block", "place"}           measures one slice → the slice, as in the row
///   {"point", "start"}                             ends the visit and writes its row → {"shown"}
class SideProcess {
 public:
  SideProcess(const SideOptions& options, const Spec& spec, std::unique_ptr<Session> session)
      : spec_(spec),
        session_(std::move(session)),
        points_(all_points(spec, *session_)),
        results_(
            (session_->connect(points_), options.folder.open(options.folder.directory(spec.name), spec, *session_))) {}

  int run() {
    for (std::string line; !interrupted() && std::getline(std::cin, line);) {
      const Json request = Json::parse(line);
      const Json answer = request.contains("limits")  ? begin(request["limits"])
                          : request.contains("block") ? measure(request)
                                                      : end(request);
      if (interrupted()) break;
      std::cout << answer.dump() << std::endl;
    }
    if (!cell_.empty()) end(visit_);  // interrupted: its slices are kept
    return interrupted() ? 130 : 0;
  }

 private:
  Json begin(const std::vector<Json>& limits) {
    std::vector<Json> own = limits;
    for (Json& row : own) row["run"] = session_->run_id();  // measured by the other side's run
    results_.begin(*session_, points_, own);
    Json names = Json::array(), params = Json::array(), variants = Json::array();
    for (const Resolution& each : points_) {
      names.push_back(spec_.info->text(each.values));
      params.push_back(spec_.info->axes().params(each.values));
      variants.push_back(spec_.info->variant(each.values));
    }
    return {{"version", kAbVersion}, {"device", session_->device().kind()}, {"points", names}, {"params", params},
            {"variants", variants},  {"limits", session_->limit_rows()}};
  }

  Json measure(const Json& request) {
    const Resolution& point = points_.at(request.at("point"));
    const unsigned start = request.at("start");
    if (cell_.empty()) began_ = CellStart{};
    visit_ = request;
    const auto number = static_cast<unsigned>(cell_.slices().size());
    Measurement measured;
    results_.supervise(
        *session_, point, start, {}, [&](Json& row) { label(request, row); },
        // Inputs differ per slice.
        [&] { measured = session_->measure(point, {start * kSlices + number % kSlices}); });
    return cell_.add(std::move(measured), {{"block", request["block"]}, {"place", request["place"]}});
  }

  Json end(const Json& request) {
    const SlicedCell cell = std::exchange(cell_, {});
    if (cell.empty()) return {{"shown", "not measured"}};
    Json row = session_->cell_row(points_.at(request.at("point")), request.at("start"), cell.total(), began_);
    label(request, row);
    row["ab"]["slices"] = cell.slices();
    results_.write(row);
    const std::string& rate = spec_.info->entry().rate;
    const auto value = figure_of(row, rate);
    return {{"shown", value ? spec_.info->text(rate, *value) : row["status"].get<std::string>()}};
  }

  static void label(const Json& request, Json& row) {
    row["ab"] = {{"point", request["point"]}, {"start", request["start"]}};
  }

  static constexpr unsigned kSlices = 4096;  // more than one visit has

  const Spec& spec_;
  std::unique_ptr<Session> session_;
  std::vector<Resolution> points_;
  Results results_;
  SlicedCell cell_;  // of the current visit
  CellStart began_;  // of its first slice
  Json visit_;       // its last request
};

int ab_side(SideOptions& options, CLI::App& command, const std::vector<std::string>& arguments) {
  const Spec spec = options.folder.load(options.common, command);
  auto session = options.common.session(spec.info->name(), arguments);
  RunSettings slice = brief(session->settings());
  slice.watch_gpu = false;
  slice.keep_disturbed = true;  // the estimate is robust, and every slice counts
  session->exchange_settings(slice);
  return SideProcess(options, spec, std::move(session)).run();
}

}  // namespace

void add_ab_side(Program& program) {
  auto options = std::make_shared<SideOptions>();
  CLI::App* command =
      program.app.add_subcommand("ab-side", "one side of `ab`; reads requests for slices from stdin")->group("");
  options->folder.add(*command, "ab");
  options->common.add(*command);
  program.on_choice(*command, [options, command, &program] { return ab_side(*options, *command, program.arguments); });
}

}  // namespace feedrate
