#include "experiments/cli/progress.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "common/clock.hpp"
#include "common/units.hpp"
#include "experiments/sweep/tune.hpp"

namespace feedrate {
namespace {

constexpr std::size_t kLeastColumns = 40;
constexpr std::size_t kMeasured = 3;  // cells, until the time left goes by them

std::size_t terminal_columns() {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kColumns;
  return std::clamp<std::size_t>(size.ws_col, kLeastColumns, kColumns);
}

std::string figures_text(const Json& row) {
  if (!row.contains("throughput")) return row["status"];
  return fmt::format("{:>12}  p50 {:>7}", format_rate(row["throughput"]["messages_per_second"]),
                     format_ns(row["latency_ns"]["p50"]));
}

}  // namespace

std::string shortened(const std::string& text, std::size_t columns) {
  std::size_t seen = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const bool continues = (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80;  // of a character in UTF-8
    if (continues) continue;
    if (++seen == columns) {
      std::size_t next = at + 1;
      while (next < text.size() && (static_cast<unsigned char>(text[next]) & 0xC0) == 0x80) ++next;
      return next == text.size() ? text : text.substr(0, at) + "…";
    }
  }
  return text;
}

std::string crowded_text(const std::vector<Resolution>& points, unsigned cores) {
  std::size_t crowded = 0;
  unsigned most = 0;
  for (const auto& [point, impossible] : points) {
    if (!impossible.empty() || spinning_threads(point) <= cores) continue;
    ++crowded;
    most = std::max(most, spinning_threads(point));
  }
  if (crowded == 0) return "";
  return fmt::format(
      "warning: {} of {} points spin up to {} threads on {} cores. They wait for cores,\n"
      "         and their latency shows that. Axis producers=0: as many as fit.",
      crowded, points.size(), most, cores);
}

Labels::Labels(const std::vector<Resolution>& points) {
  for (const Axis& a : axes()) {
    std::set<Json> values;  // of the points that it applies to
    for (const Resolution& each : points) {
      const Json value = a.get(each.point);
      if (value != 0 && value != kNoTransfer) values.insert(value);
    }
    if (values.size() > 1) varying_.push_back(a.name);
  }
}

std::string Labels::of(const Point& point) const {
  std::string text = variant_of(point);
  for (const std::string& name : varying_) {
    if (name == "queue" || name == "transfer") continue;
    const Json value = axis(name).get(point);
    if (value == 0 || value == kNoTransfer) continue;
    if (name == "payload") {
      text += " " + format_count(point.payload) + "B";
    } else if (value.is_string()) {
      text += " " + value.get<std::string>();
    } else {
      text += " " + name + "=" + (value.is_number_unsigned() ? format_count(value) : value.dump());
    }
  }
  return text;
}

Progress::Progress(std::size_t cells, double seconds_per_cell)
    : cells_(cells),
      per_cell_(seconds_per_cell),
      start_(now_ns()),
      columns_(terminal_columns()),
      terminal_(isatty(STDERR_FILENO) != 0) {}

void Progress::show(const std::string& line, bool stays) {
  if (!terminal_) {
    if (stays) fmt::print(stderr, "{}\n", shortened(line, columns_));
    return;
  }
  // One column is left free: some terminals begin a new line when the last is written.
  fmt::print(stderr, "\r\033[K{}{}", shortened(line, columns_ - 1), stays ? "\n" : "");
  open_ = !stays;
}

void Progress::before(const std::string& label) {
  const std::size_t k = done_ + 1;
  cells_ = std::max(cells_, k);  // repetitions until they are precise can't be counted beforehand
  const double spent = static_cast<double>(now_ns() - start_) / 1e9;
  const double per_cell = done_ < kMeasured ? per_cell_ : spent / static_cast<double>(done_);
  head_ = fmt::format("[{}/{}] {:.0f} s left", k, cells_, per_cell * static_cast<double>(cells_ - k + 1));
  label_ = label;
  show(head_ + "  " + label_, false);
}

void Progress::after(const Json& row) {
  ++done_;
  const bool good = row["status"] == "ok";
  show(fmt::format("{}  {}  {}", head_, figures_text(row), label_), !terminal_ || !good);
  if (!good) {
    show(fmt::format("    {}: {}", row["status"].get<std::string>(), row["reason"].get<std::string>()), true);
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
  if (open_) fmt::print(stderr, "\n");
  open_ = false;
}

}  // namespace feedrate
