#include "experiments/sweep/results.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <fstream>
#include <mutex>
#include <thread>

#include "common/error.hpp"
#include "common/units.hpp"
#include "variants/queue.hpp"

namespace feedrate {
namespace {

constexpr double kLongestByMessages = 86400;
constexpr double kUnstoppableSeconds = 30;  // beyond what a cell may take at most

/// Calls `strike` unless destroyed in time: the way out when a cell hangs where no flag is looked at, such as a kernel
/// that never ends.
class Deadman {
 public:
  Deadman(double seconds, std::function<void()> strike)
      : thread_([this, seconds, strike = std::move(strike)](const std::stop_token& stop) {
          std::unique_lock lock(mutex_);
          const auto limit = std::chrono::duration<double>(seconds);
          if (!wake_.wait_for(lock, stop, limit, [] { return false; }) && !stop.stop_requested()) strike();
        }) {}

 private:
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::jthread thread_;
};

/// Makes the directory with its spec.json, which is there whole or not at all: a resume must be able to read it,
/// whenever this is killed.
void make_results(const std::filesystem::path& directory, const Json& document) {
  try {
    std::filesystem::create_directories(directory);
    const auto partial = directory / "spec.json.partial";
    std::ofstream file(partial);
    file.exceptions(std::ios::failbit | std::ios::badbit);
    file << document.dump(2) << "\n";
    file.close();
    std::filesystem::rename(partial, directory / "spec.json");
  } catch (const std::system_error& error) {  // of the file system as of the stream
    throw BadInput("--out", directory.string(), fmt::format("a directory to write to ({})", error.what()));
  }
}

const std::filesystem::path& made(const std::filesystem::path& directory, const Json& document, bool resume) {
  if (!resume) make_results(directory, document);
  return directory;
}

}  // namespace

Results::Results(const std::filesystem::path& directory, const Json& document, bool resume)
    : recorder_(made(directory, document, resume) / "rows.jsonl") {}

std::set<std::string> Results::done(const std::string& kind) const {
  std::set<std::string> ids;
  for (const Json& row : earlier()) {
    if (row.value("status", "") == "invalid" && row.value("reason", "") == "interrupted") continue;
    if (row.value("kind", "") == kind) ids.insert(row.at("id").get<std::string>());
  }
  return ids;
}

void Results::provide_floors(Session& session, bool redis) {
  const auto floors = done("floor");
  if (done("cell").empty()) {  // floors come first: a cell says that all of them have rows
    for (const Json& row : session.measure_floors(redis)) {
      if (!floors.contains(row.at("id").get<std::string>())) write(row);
    }
  }
  for (const Json& row : earlier()) {
    if (row.value("kind", "") == "floor") session.add_floor_row(row);
  }
}

Json Results::measure(Session& session, const Resolution& cell, unsigned repetition,
                      const std::function<void()>& restart, const std::function<void(Json&)>& label) {
  const RunSettings& settings = session.settings();
  // A phase counted in messages may take as long as it likes: while results come, the load's own watchdog is content.
  const double phases = settings.messages != 0 ? kLongestByMessages : 2 * settings.seconds + settings.warmup_seconds;
  const double longest = phases + 3 * settings.watchdog_seconds + kUnstoppableSeconds;
  const Deadman deadman(longest, [&] {
    Json hung =
        session.failed_row(cell.point, repetition, fmt::format("hung: could not be stopped within {:.0f} s", longest));
    label(hung);
    write(hung);
    spdlog::error("a cell hangs and can't be stopped; starting again behind it");
    if (restart) restart();
    _exit(1);
  });
  Json row = session.run_cell(cell, repetition);
  label(row);
  return row;
}

bool any_uses_redis(const std::vector<Resolution>& points) {
  return std::any_of(points.begin(), points.end(), [](const Resolution& r) {
    return r.impossible.empty() && Queues::instance().get("--queue", r.point.queue).uses_redis;
  });
}

std::vector<Resolution> distinct(const std::vector<Point>& points, Device& device) {
  std::vector<Resolution> all;
  std::set<std::string> seen;
  for (const Point& point : points) {
    Resolution resolution = resolve(point, device);
    if (seen.insert(params_of(resolution.point).dump()).second) all.push_back(std::move(resolution));
  }
  return all;
}

std::string short_text(const Point& p) {
  std::string text = fmt::format("{} {} {} payload={} window={} batch={}", p.queue, p.transfer, p.workload,
                                 format_count(p.payload), p.window, p.batch);
  if (p.producers != 1) text += fmt::format(" producers={}", p.producers);
  if (p.streams != 0) text += fmt::format(" streams={}", p.streams);
  if (p.lanes != 0) text += fmt::format(" lanes={}", p.lanes);
  if (p.block != 0) text += fmt::format(" block={}", p.block);
  if (p.pack > 1) text += fmt::format(" pack={}", p.pack);
  if (p.arrivals != "closed") text += " " + p.arrivals;
  if (p.rate != 0) text += " " + format_rate(static_cast<double>(p.rate));
  return text;
}

}  // namespace feedrate
