#include "experiments/harness/sweep/results.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <fstream>
#include <mutex>
#include <thread>
#include <utility>

#include "common/error.hpp"
#include "common/hash.hpp"
#include "experiments/harness/atomic_file.hpp"
#include "experiments/harness/measure/catalogue.hpp"

namespace feedrate {
namespace {

constexpr double kLongestByMessages = 86400;
constexpr double kLongestPhase = 12;        // multiple of the requested seconds, because the pipe fills first
constexpr double kUnstoppableSeconds = 30;  // added to a cell's maximum time

/// Calls `strike` unless destroyed in time. Handles cells that hang without checking a stop flag, such as one whose
/// kernel never ends.
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

/// Creates the directory with its spec.json, which a resume must be able to read.
void make_results(const std::filesystem::path& directory, const Json& document) {
  std::error_code failed;
  std::filesystem::create_directories(directory, failed);
  if (failed) {
    throw BadInput("--out", directory.string(), fmt::format("a writable directory ({})", failed.message()));
  }
  write_whole(directory / "spec.json", document);
}

const std::filesystem::path& made(const std::filesystem::path& directory, const Json& document, bool resume) {
  if (!resume) make_results(directory, document);
  return directory;
}

}  // namespace

void write_whole(const std::filesystem::path& path, const Json& document) {
  try {
    AtomicFile file(path);
    file.stream() << dumped(document, 2) << "\n";
    file.commit();
  } catch (const std::system_error& error) {  // from the file system or the stream
    throw BadInput("--out", path.parent_path().string(), fmt::format("a writable directory ({})", reason_of(error)));
  }
}

std::string spec_hash(const std::filesystem::path& directory) {
  std::ifstream file(directory / "spec.json");
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  return fmt::format("{:016x}", hash64(bytes));
}

Results::Results(const std::filesystem::path& directory, const Json& document, bool resume)
    : directory_(directory), recorder_(made(directory, document, resume) / "rows.jsonl") {}

std::set<std::string> Results::done(const std::string& kind) const {
  std::set<std::string> ids;
  for (const Json& row : earlier()) {
    if (row.value("cause", "") == text_of(Cause::interrupted)) continue;
    if (row.value("kind", "") == kind) ids.insert(row.at("id").get<std::string>());
  }
  return ids;
}

void Results::write(const Json& row) {
  if (!run_.is_null()) recorder_.write(std::exchange(run_, Json()));
  recorder_.write(row);
}

void Results::begin(Session& session, std::span<const Resolution> points, const std::vector<Json>& known) {
  const auto limits = done("limit");
  std::vector<Json> fresh = known;
  for (const Json& row : known) session.add_limit_row(row);
  if (known.empty() && done("cell").empty()) {  // limits are written first, so a cell implies that all limits have rows
    fresh = session.measure_limits(points);
    std::erase_if(fresh, [&](const Json& row) { return limits.contains(row.at("id").get<std::string>()); });
  }
  for (const Json& row : earlier()) {
    if (row.value("kind", "") == "limit") session.add_limit_row(row);
  }
  run_ = session.run_row();
  run_["spec"] = spec_hash(directory_);
  for (const Json& row : fresh) write(row);
  if (!std::filesystem::exists(directory_ / "catalogue.json")) {
    write_whole(directory_ / "catalogue.json", catalogue());
  }
}

void Results::end(const Session& session) {
  if (!run_.is_null() || session.limit_rounds() <= session.settings().limit_rounds) return;
  for (const Json& row : session.limit_rows()) write(row);
}

Json Results::measure(Session& session, const Resolution& cell, unsigned repetition,
                      const std::function<void()>& restart, const Label& label) {
  Json row;
  supervise(session, cell, repetition, restart, label, [&] { row = session.run_cell(cell, repetition); });
  label(row);
  return row;
}

void Results::supervise(Session& session, const Resolution& cell, unsigned repetition,
                        const std::function<void()>& restart, const Label& label, const std::function<void()>& body) {
  const RunSettings& settings = session.settings();
  // A phase counted in messages may take any amount of time: the load's own watchdog fires only if no results arrive.
  const double phases = settings.messages != 0
                            ? kLongestByMessages
                            : kLongestPhase * settings.seconds + 2 * kMaxWarmups * settings.warmup_seconds;
  const double longest = phases + 3 * settings.watchdog_seconds + kUnstoppableSeconds;
  const Deadman deadman(longest, [&] {
    Json hung = session.hung_row(cell, repetition, fmt::format("hung: could not be stopped within {:.0f} s", longest));
    label(hung);
    write(hung);
    spdlog::error("a cell hung and cannot be stopped; restarting the process and continuing with the next cell");
    if (restart) restart();
    _exit(1);
  });
  body();
}

std::vector<Resolution> distinct(const std::vector<Values>& points, Session& session) {
  std::vector<Resolution> all;
  std::set<std::string> seen;
  for (const Values& point : points) {
    Resolution resolution = session.resolve(point);
    if (seen.insert(session.info().axes().params(resolution.values).dump()).second)
      all.push_back(std::move(resolution));
  }
  return all;
}

}  // namespace feedrate
