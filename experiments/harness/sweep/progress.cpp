#include "experiments/harness/sweep/progress.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "common/clock.hpp"
#include "common/units.hpp"
#include "experiments/harness/measure/statistics.hpp"
#include "experiments/harness/say.hpp"
#include "experiments/harness/sweep/repeats.hpp"

namespace feedrate {
namespace {

constexpr std::size_t kLeastColumns = 40;
constexpr std::size_t kMeasured = 3;  // cells before their mean time predicts the time left

std::size_t terminal_columns() {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kColumns;
  return std::clamp<std::size_t>(size.ws_col, kLeastColumns, kColumns);
}

std::string figures_text(const ExperimentInfo& info, const Json& row) {
  const auto rate = figure_of(row, info.entry().rate), time = figure_of(row, info.entry().time + ".p50");
  if (!rate && !time) return row["status"];
  std::string text;
  if (rate) text = fmt::format("{:>12}", info.text(info.entry().rate, *rate));
  if (time) text += fmt::format("{}p50 {:>7}", text.empty() ? "" : "  ", info.text(info.entry().time, *time));
  return text;
}

/// The variant with the best point for every headline figure, or for every task. Distributions are compared by their
/// medians.
class Best final : public Summary {
 public:
  explicit Best(const ExperimentInfo& info) : info_(info) {}

  void add(const Json& row) override {
    if (row.value("kind", "") != "cell" || row.contains("search")) return;
    const bool disturbed = is_disturbed(row);
    if (row.value("status", "") != "ok" && !disturbed) return;
    const Values values = info_.axes().values(row["params"]);
    const auto& task_of = info_.entry().terminal.task;
    const std::optional<Task> task = task_of ? task_of(values) : Task{};
    if (!task) return;
    Point& point = points_[row["params"].dump()];
    point.task = *task;
    point.variant = info_.variant(values);
    point.at = values;
    cpu_ |= row["params"].value("device", "") == "cpu";
    for (const Figure& figure : info_.entry().figures) {
      if (!figure.headline) continue;
      if (const auto value = figure_of(row, part_of(figure))) {
        point.values[figure.name].add(*value, is_afresh(row), disturbed);
      }
    }
  }

  std::vector<Chosen> chosen() const override {
    std::vector<Chosen> all;
    std::set<Task> tasks;
    for (const auto& [params, point] : points_) tasks.insert(point.task);
    const bool by_task = info_.entry().terminal.task != nullptr;
    for (const Figure& figure : info_.entry().figures) {
      if (!figure.headline || (by_task && figure.name != info_.entry().rate)) continue;
      for (const Task& task : tasks) {
        for (const Place& place : places_of(figure, task)) all.push_back({place.at, place.of});
      }
    }
    return all;
  }

  std::string text() const override {
    std::string text;
    if (info_.entry().terminal.task) return points_.empty() ? text : text_by_task();
    for (const Figure& figure : info_.entry().figures) {
      const auto places = places_of(figure, {});
      if (places.empty()) continue;
      text += line(figure, part_of(figure), places[0]);
      if (places.size() > 1) text += line(figure, "  next: " + comparison(places[0].value, places[1].value), places[1]);
    }
    if (text.empty()) return text;
    return best_heading(cpu_) + text;
  }

 private:
  struct Point {
    Task task;
    std::string variant;
    Values at;
    std::map<std::string, ChosenValues> values;  // by figure
  };
  struct Place {
    std::string variant;
    Values at;
    double rank = 0;  // decides which point of the variant this is
    Estimate value;
    bool disturbed = false;
    std::size_t of = 1;  // number of the variant's points
  };
  static std::string part_of(const Figure& figure) { return figure.name + (figure.distribution ? ".p50" : ""); }

  /// A line for each task: the best variant, and the next one if it may be as good.
  std::string text_by_task() const {
    constexpr std::size_t kMost = 18;  // tasks
    const Figure& rate = *std::ranges::find(info_.entry().figures, info_.entry().rate, &Figure::name);
    std::set<Task> tasks;
    std::set<std::string> details;
    for (const auto& [params, point] : points_) {
      tasks.insert(point.task);
      details.insert(point.task.detail);
    }
    std::vector<std::array<std::string, 3>> lines;  // task, variants, value
    std::size_t task_width = 0, variant_width = 0;
    for (const Task& task : tasks) {
      if (lines.size() == kMost) break;
      const auto ranked = places_of(rate, task);
      if (ranked.empty()) continue;  // a disturbed point may have no rate
      const bool unclear = ranked.size() > 1 && comparison(ranked[0].value, ranked[1].value) == "unclear";
      lines.push_back(
          {fmt::format("{} {}{}", task.words, format_count(task.number), details.size() > 1 ? " " + task.detail : ""),
           ranked[0].variant + (unclear ? " or " + ranked[1].variant : ""), value_text(rate, ranked[0])});
      task_width = std::max(task_width, lines.back()[0].size());
      variant_width = std::max(variant_width, lines.back()[1].size());
    }
    std::string text = best_heading(cpu_, "A or B");
    for (const auto& [task, variants, value] : lines) {
      const std::string line = fmt::format("  {:<{}} {:<{}} {}", task, task_width, variants, variant_width, value);
      text += (shortened(line, kColumns) == line ? line : fmt::format("  {}\n    {} {}", task, variants, value)) + "\n";
    }
    if (tasks.size() > kMost) text += fmt::format("  and {} more tasks, in the report\n", tasks.size() - kMost);
    return text;
  }
  /// The best point of each variant, sorted with the best first.
  std::vector<Place> places_of(const Figure& figure, const Task& task) const {
    const auto better = [higher = figure.better == Better::higher](double a, double b) {
      return higher ? a > b : a < b;
    };
    std::map<std::string, Place> best;
    for (const auto& [params, point] : points_) {
      const auto found = point.values.find(figure.name);
      if (found == point.values.end() || point.task != task) continue;
      const ChosenValues& values = found->second;
      Place place{point.variant, point.at, values.rank(), estimate_of(values.counted()), values.disturbed()};
      const auto [known, fresh] = best.try_emplace(point.variant, place);
      if (fresh) continue;
      place.of = known->second.of + 1;
      if (better(place.rank, known->second.rank)) known->second = place;
      known->second.of = place.of;
    }
    std::vector<Place> places;
    places.reserve(best.size());
    for (const auto& [variant, place] : best) places.push_back(place);
    std::ranges::stable_sort(places, better, [](const Place& place) { return place.value.median; });
    return places;
  }
  std::string line(const Figure& figure, const std::string& head, const Place& place) const {
    return fmt::format("  {:<21} {:<19} {}\n", head, place.variant, value_text(figure, place));
  }
  std::string value_text(const Figure& figure, const Place& place) const {
    return info_.text(figure.name, place.value.median) + place.value.spread_text() +
           (place.disturbed ? ", every run disturbed" : "");
  }

  const ExperimentInfo& info_;
  std::map<std::string, Point> points_;  // keyed by parameters
  bool cpu_ = false;
};

}  // namespace

namespace {

/// The point's numeric axes that determine how many threads spin: with 1 there are fewer.
std::vector<std::string> axes_of_threads(const ExperimentInfo& info, const Values& point) {
  std::vector<std::string> names;
  for (const auto& [axis, owners] : info.axes().entries()) {
    const auto found = point.find(axis.name);
    if (found == point.end() || !std::holds_alternative<std::uint64_t>(found->second) || axis.least > 1) continue;
    Values fewer = point;
    fewer[axis.name] = std::uint64_t{1};
    if (info.entry().threads(fewer) < info.entry().threads(point)) names.push_back(axis.name);
  }
  return names;
}

}  // namespace

std::string crowded_text(const ExperimentInfo& info, const std::vector<Resolution>& points, unsigned cores) {
  std::size_t crowded = 0;
  unsigned most = 0;
  std::set<std::string> axes;
  for (const Resolution& each : points) {
    if (!each.impossible.empty()) continue;
    const unsigned threads = info.entry().threads(each.values);
    if (threads <= cores) continue;
    ++crowded;
    most = std::max(most, threads);
    for (std::string& name : axes_of_threads(info, each.values)) axes.insert(std::move(name));
  }
  if (crowded == 0) return "";
  std::string text = fmt::format(
      "warning: {} of {} points spin up to {} threads on {} cores. Waiting for cores adds to their latency.", crowded,
      points.size(), most, cores);
  if (!axes.empty()) text += fmt::format(" Axes that set the number of threads: {}.", fmt::join(axes, ", "));
  constexpr std::size_t kIndent = 9;
  return wrapped(text, kIndent);
}

std::string verdict_text(const Json& row) {
  std::string reason = row["reason"];
  if (!is_disturbed(row)) return row["status"].get<std::string>() + ": " + reason;
  constexpr std::string_view kPrefix = "disturbed: ";
  if (reason.starts_with(kPrefix)) reason.erase(0, kPrefix.size());
  return (row.contains("stop") ? "not counted, because " : "will be measured again, because ") + reason;
}

Labels::Labels(const ExperimentInfo& info, const std::vector<Resolution>& points) : info_(info) {
  for (const auto& [axis, owners] : info.axes().entries()) {
    std::set<Value> values;  // for the points to which the axis applies
    for (const Resolution& each : points) {
      const auto found = each.values.find(axis.name);
      if (found != each.values.end() && !is_none(found->second)) values.insert(found->second);
    }
    if (values.size() > 1) varying_.push_back(axis.name);
  }
}

std::string Labels::of(const Values& point) const {
  std::string text = info_.variant(point);
  const auto& variant = info_.entry().variant;
  for (const std::string& name : varying_) {
    const auto found = point.find(name);
    if (found == point.end() || is_none(found->second) || std::ranges::find(variant, name) != variant.end()) continue;
    const auto* number = std::get_if<std::uint64_t>(&found->second);
    if (name == "payload") {
      text += " " + format_count(*number) + "B";
    } else if (std::holds_alternative<std::string>(found->second)) {
      text += " " + text_of(found->second);
    } else {
      text += " " + name + "=" + (number != nullptr ? format_count(*number) : text_of(found->second));
    }
  }
  return text;
}

Progress::Progress(const ExperimentInfo& info, std::size_t cells, double seconds_per_cell)
    : info_(info),
      cells_(cells),
      per_cell_(seconds_per_cell),
      start_(now_ns()),
      columns_(terminal_columns()),
      terminal_(isatty(STDERR_FILENO) != 0) {}

void Progress::show(const std::string& line, bool stays) {
  if (!terminal_) {
    if (stays) say("{}\n", line);  // the width of a file is not limited
    return;
  }
  // One column remains free: some terminals start a new line when the last column is written.
  say("\r\033[K{}{}", shortened(line, columns_ - 1), stays ? "\n" : "");
  open_ = !stays;
}

void Progress::before(const std::string& label) {
  const std::size_t k = done_ + 1;
  cells_ = std::max(cells_, k);  // the number of repetitions with --until-precise is not known in advance
  const double spent = static_cast<double>(now_ns() - start_) / 1e9;
  const double per_cell = done_ < kMeasured ? per_cell_ : spent / static_cast<double>(done_);
  head_ = fmt::format("[{}/{}] {:.0f} s left", k, cells_, per_cell * static_cast<double>(cells_ - k + 1));
  label_ = label;
  show(head_ + "  " + label_, false);
}

void Progress::after(const Json& row) {
  ++done_;
  const bool good = row["status"] == "ok";
  show(fmt::format("{}  {}  {}", head_, figures_text(info_, row), label_), !terminal_ || !good);
  if (!good) {
    say("    {}\n", wrapped(verdict_text(row), 6, columns_ - 4));
  }
}

void Progress::show_now(const std::string& line) {
  label_ = line;
  show(line, false);
}

void Progress::keep() {
  if (!terminal_) show(label_, true);
}

void Progress::end() {
  if (open_) say("\n");
  open_ = false;
}

std::unique_ptr<Summary> summary_of(const ExperimentInfo& info) {
  const auto& own = info.entry().terminal.summary;
  return own ? own() : std::make_unique<Best>(info);
}

}  // namespace feedrate
