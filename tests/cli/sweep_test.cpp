// Cells of a sweep, their order, and the files that a sweep writes.
#include <pty.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "tests/cli/feedrate_process.hpp"

namespace feedrate::cli_test {
namespace {

class Sweep : public testing::Test {
 protected:
  Outcome sweep(Words more) {
    more.insert(more.begin(), {"sweep", "s.json", "--device", "cpu"});
    return place_.run(more);
  }
  /// Lines of a dry run: number, id, "rep", repetition, parameters.
  std::vector<std::string> plan(const std::string& spec, Words more = {}) {
    place_.write("s.json", spec);
    more.insert(more.begin(), "--dry-run");
    const Outcome outcome = sweep(more);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    std::vector<std::string> lines;
    std::istringstream text(outcome.out);
    for (std::string line; std::getline(text, line);) lines.push_back(line);
    return lines;
  }
  static std::vector<std::string> ids(const std::vector<std::string>& plan) {
    std::vector<std::string> all;
    for (const auto& line : plan) {
      std::istringstream words(line);
      std::string number, id;
      words >> number >> id;
      all.push_back(id);
    }
    return all;
  }
  static std::vector<std::string> ids(const std::vector<Json>& cells) {
    std::vector<std::string> all;
    for (const Json& cell : cells) all.push_back(cell.at("id"));
    return all;
  }
  std::vector<Json> measured(const std::string& spec, Words more = {}) {
    place_.write("s.json", spec);
    more.insert(more.begin(), {"--out", "out"});
    const Outcome outcome = sweep(more);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    const Outcome validation = place_.run({"validate", "out/rows.jsonl"});
    EXPECT_EQ(validation.code, 0) << validation.err;
    return cells_of(place_ / "out" / "rows.jsonl");
  }
  static int count(const std::vector<std::string>& lines, const std::string& text) {
    return static_cast<int>(
        std::count_if(lines.begin(), lines.end(), [&](const auto& line) { return line.find(text) != line.npos; }));
  }
  Workplace place_;
};

constexpr auto kInProcess = R"({"axes": {"queue": "null,host_polled,gpu_ring", "payload": "64,1Ki"},
                                "run": {"repetitions": 2, "messages": 200, "warmup": 0.01}})";

TEST_F(Sweep, DryRunCountsCellsWithoutMeasuring) {
  const auto lines = plan(kInProcess);
  EXPECT_EQ(lines.size(), 12u);
  const auto all = ids(lines);
  EXPECT_EQ(std::set(all.begin(), all.end()).size(), 12u);
  const Outcome outcome = sweep({"--dry-run"});
  EXPECT_NE(outcome.err.find("12 cells = 6 points × 2 repetitions"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("at least"), std::string::npos) << "no estimate: " << outcome.err;
  EXPECT_EQ(place_.contents(), Words{"s.json"});
}

TEST_F(Sweep, SeedDeterminesTheOrderButNotTheIds) {
  const auto lines = plan(kInProcess, {"--seed", "7"}), other = plan(kInProcess, {"--seed", "8"});
  EXPECT_EQ(lines, plan(kInProcess, {"--seed", "7"}));
  EXPECT_NE(lines, other);
  const auto one = ids(lines), two = ids(other);
  EXPECT_EQ(std::set(one.begin(), one.end()), std::set(two.begin(), two.end()))
      << "the seed must change only the order, not the ids";
  EXPECT_EQ(ids(measured(kInProcess, {"--seed", "7"})), one) << "cells must be measured in the planned order";
}

TEST_F(Sweep, AllQueuesProduceCleanValidRows) {
  FEEDRATE_NEEDS_REDIS();
  const auto cells = measured(R"({"axes": {"queue": "null,host_polled,redis_list,redis_stream,gpu_ring",
                                           "payload": "64,1Ki", "transfer": "pageable,mapped"},
                                  "run": {"messages": 2000, "warmup": 0.01}})",
                              {"--floor-rounds", "2", "--keep-disturbed"});
  std::set<std::string> seen, queues;
  for (const Json& cell : cells) {
    EXPECT_TRUE(seen.insert(cell.at("id")).second) << "measured twice: " << cell.at("params");
    // On two cores the load generator may be the limit; its own figure from the same run shows whether it was.
    const bool alone = cell.at("params").at("queue") == "null";  // this queue measures the load generator
    const bool generator_bound = !alone && cell.at("details").at("driver").at("ratio") > 0.9;
    EXPECT_EQ(cell.at("cause"), generator_bound ? "driver_bound" : "") << cell.at("reason");
    EXPECT_EQ(cell.at("status"), generator_bound ? "invalid" : "ok") << cell.at("reason");
    expect_clean(cell);
    EXPECT_GT(cell.at("figures").at("messages_per_second"), 0);
    EXPECT_GT(cell.at("figures").at("latency_ns").at("samples"), 0);
    EXPECT_GE(cell.at("figures").at("latency_ns").at("p99"), cell.at("figures").at("latency_ns").at("p50"));
    queues.insert(cell.at("params").at("queue"));
  }
  EXPECT_EQ(queues.size(), 5u);
  EXPECT_EQ(cells.size(), 2u * (1 + 2 + 2 + 2 + 1)) << "queues without transfers are measured once, not twice";
  std::map<std::string, std::vector<Json>> limits;
  for (const Json& row : rows_of(read_text(place_ / "out" / "rows.jsonl"))) {
    if (row.at("kind") != "limit") continue;
    limits[row.at("limit").at("name")].push_back(row.at("limit"));
  }
  for (const auto& [name, rows] : limits) {
    EXPECT_LE(rows.size(), 2u) << name << ": must be read at most twice, at the start and at the end";
    EXPECT_GE(rows[0].at("readings").size(), 2u) << name;
    EXPECT_LE(rows[0].at("least"), rows[0].at("value")) << name;
    EXPECT_LE(rows[0].at("value"), rows[0].at("greatest")) << name;
  }
  EXPECT_TRUE(limits.contains("redis_round_trip_ns"));
  EXPECT_TRUE(limits.contains("host_copy_bytes_per_second"));
}

TEST_F(Sweep, ThatCanMeasureNothingFails) {
  plan(R"({"axes": {"queue": "host_polled", "workload": "vecadd", "payload": 20}})");
  const Outcome outcome = sweep({"--floor-rounds", "0"});
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  EXPECT_NE(outcome.err.find("nothing was measured: all 1 points are impossible"), std::string::npos) << outcome.err;
}

TEST_F(Sweep, ImpossiblePointsAreSkippedWithReason) {
  const auto cells = measured(R"({"axes": {"queue": "host_polled", "workload": "vecadd", "payload": "20,64"},
                                  "run": {"messages": 200, "warmup": 0}})");
  ASSERT_EQ(cells.size(), 2u);
  for (const Json& cell : cells) {
    const bool possible = cell.at("params").at("payload_bytes") == 64;
    // A busy machine may disturb such a short measurement, which is then "invalid".
    EXPECT_EQ(cell.at("status") == "skipped", !possible) << cell.at("status") << ": " << cell.at("reason");
    EXPECT_EQ(cell.contains("figures"), possible);
    const bool said = cell.at("reason").get<std::string>().find("32 bytes") != std::string::npos;
    EXPECT_NE(said, possible) << cell.at("reason");
  }
}

TEST_F(Sweep, AxisOptionReplacesAndAddsAxes) {
  const auto lines =
      plan(kInProcess, {"--axis", "queue=null", "--axis", "payload=pow2:4..8:2", "--axis", "window=1..3"});
  EXPECT_EQ(lines.size(), 2u * 3 * 3);
  EXPECT_EQ(count(lines, " null "), 18);
  for (const char* payload : {"payload=16 ", "payload=64 ", "payload=256 "})
    EXPECT_EQ(count(lines, payload), 6) << payload;
  EXPECT_EQ(count(lines, "window=3"), 6);
}

TEST_F(Sweep, ZippedAxesStepTogether) {
  const auto lines =
      plan(R"({"axes": {"queue": "host_polled", "batch": "1,2,4", "window": ["8", 16, "32"], "payload": "64,1Ki"},
                              "zip": [["batch", "window"]]})");
  EXPECT_EQ(lines.size(), 6u);
  for (const char* pair : {"batch=1 window=8", "batch=2 window=16", "batch=4 window=32"})
    EXPECT_EQ(count(lines, pair), 2) << pair;
}

TEST_F(Sweep, ConstraintsExcludePoints) {
  const std::string axes =
      R"({"axes": {"queue": "host_polled", "batch": 1, "window": "8,16,32", "payload": "64,1Ki"},)";
  auto lines = plan(axes + R"("constraints": [{"if": {"payload": "1024"}, "then": {"window": {"max": 16}}}]})");
  EXPECT_EQ(lines.size(), 5u);
  EXPECT_EQ(count(lines, "payload=1Ki window=32"), 0);
  lines = plan(axes + R"("constraints": [{"product": ["payload", "window"], "max": "8Ki"}]})");
  EXPECT_EQ(lines.size(), 4u);
  EXPECT_EQ(count(lines, "payload=1Ki"), 1);
}

TEST_F(Sweep, PartsAreCombinedWithoutDuplicates) {
  const auto lines = plan(R"({"parts": [{"axes": {"queue": "null", "payload": "64,128"}},
                                        {"axes": {"queue": "null,host_polled", "payload": "128"}}]})");
  EXPECT_EQ(lines.size(), 3u) << "null with 128 bytes is in both parts";
}

// Few messages: with threads that share cores, a lone message takes up to 50 ms.
TEST_F(Sweep, SearchMeasuresItsWinnerAgain) {
  place_.write("s.json", R"({"run": {"messages": 40, "warmup": 0, "repetitions": 3}, "parts": [
      {"axes": {"queue": ["host_polled", "gpu_ring"], "transfer": "pinned", "payload": 64, "producers": 1},
       "search": {"goal": "messages_per_second", "seconds": 0.4, "axes": {"window": [1, 64, 256], "batch": [1, 64]}}},
      {"axes": {"queue": ["host_polled", "gpu_ring"], "payload": 64, "window": 1, "producers": 1}}]})");
  const Outcome outcome = place_.run({"sweep", "s.json", "--out", "out", "--device", "cpu"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(place_.run({"validate", "out/rows.jsonl"}).code, 0);
  std::map<std::string, double> spent;         // keyed by variant
  std::map<std::string, int> tried, measured;  // keyed by point
  for (const Json& row : cells_of(place_ / "out" / "rows.jsonl")) {
    const std::string queue = row.at("params").at("queue");
    if (row.contains("search")) {
      EXPECT_EQ(row["search"]["goal"], "messages_per_second");
      EXPECT_EQ(row["params"]["producers"], 1) << "the part fixes the producers";
      ++tried[row.at("params").dump()];
      spent[queue] += row.at("time").at("duration_seconds").get<double>();
    } else {
      ++measured[row.at("params").dump()];
    }
  }
  EXPECT_EQ(measured.size(), 4u) << "two winners and two lone points";
  int winners = 0;
  for (const auto& [params, times] : measured) {
    EXPECT_EQ(times, 3) << params;
    winners += tried.contains(params) ? 1 : 0;
  }
  EXPECT_GE(winners, 2) << "winners must be points that were tried";
  // halving_test.cpp in tests/experiments/harness/sweep checks with simulated time that the search then ends.
  for (const char* queue : {"host_polled", "gpu_ring"})
    EXPECT_GE(spent[queue], 0.4) << "the search must use its full budget";
  for (const char* said : {"these are not GPU results", "NOT GPU results", "small, 64B", "lone, 64B", "next: "})
    EXPECT_NE(outcome.err.find(said), std::string::npos) << outcome.err;
}

TEST_F(Sweep, InterruptedSearchResumesWithItsTries) {
  place_.write("s.json", R"({"run": {"messages": 200, "warmup": 0, "repetitions": 1}, "parts": [
      {"axes": {"queue": "host_polled", "payload": 64},
       "search": {"seconds": 3, "axes": {"window": [1, 4, 16, 64, 256], "batch": [1, 4, 16, 64]}}}]})");
  const auto process = place_.start({"sweep", "s.json", "--out", "out", "--device", "cpu"});
  const auto tries = [&] {
    std::istringstream lines(read_text(place_ / "out" / "rows.jsonl"));
    int count = 0;
    for (std::string line; std::getline(lines, line);) count += line.find("\"search\"") != line.npos ? 1 : 0;
    return count;
  };
  ASSERT_TRUE(await([&] { return tries() >= 5; })) << process->err();
  process->signal(SIGKILL);
  process->wait();
  ASSERT_EQ(place_.run({"sweep", "--resume", "out", "--device", "cpu"}).code, 0);
  std::map<std::string, int> ids;
  for (const Json& row : cells_of(place_ / "out" / "rows.jsonl")) ++ids[row.at("id")];
  EXPECT_GT(ids.size(), 6u);
  for (const auto& [id, times] : ids) EXPECT_EQ(times, 1) << id << " was tried twice";
}

TEST_F(Sweep, SearchBeginsAtTheStartInTheSpec) {
  place_.write("s.json", R"({"run": {"messages": 200, "warmup": 0, "repetitions": 1}, "parts": [
      {"axes": {"queue": "null", "payload": 64},
       "search": {"seconds": 0.05, "axes": {"window": [4, 64, 1024], "batch": [1, 4, 16]}, "start": {"window": 1024}}}]})");
  ASSERT_EQ(place_.run({"sweep", "s.json", "--out", "out", "--device", "cpu"}).code, 0);
  const std::vector<Json> rows = cells_of(place_ / "out" / "rows.jsonl");
  const auto first =
      std::ranges::find_if(rows, [](const Json& row) { return row.contains("search") && row["search"]["try"] == 0; });
  ASSERT_NE(first, rows.end());
  EXPECT_EQ((*first)["params"]["window"], 1024);
}

TEST_F(Sweep, SearchChangesItsStartOnlyIfAConstraintForbidsIt) {
  place_.write("s.json", R"({"parts": [{"axes": {"queue": "host_polled", "transfer": "pinned", "payload": "1Mi"},
      "constraints": [{"product": ["payload", "window"], "max": "16Mi"}],
      "search": {"axes": {"window": [4, 64], "streams": [1, 2, 4], "workers": [2, 1]}, "start": {"window": 64}}}]})");
  const std::string planned = place_.run({"sweep", "s.json", "--dry-run", "--device", "cpu"}).out;
  EXPECT_NE(planned.find(" window=4"), planned.npos) << "the first allowed value: " << planned;
  EXPECT_EQ(planned.find(" streams="), planned.npos) << "streams keep their default: " << planned;
}

TEST_F(Sweep, ConstraintAppliesToTheResolvedNumberOfProducers) {
  place_.write("s.json", R"({"run": {"messages": 200, "warmup": 0, "repetitions": 1}, "parts": [
      {"axes": {"queue": "null", "payload": 64},
       "constraints": [{"product": ["window", "producers"], "max": 16}],
       "search": {"seconds": 1, "axes": {"window": [1, 4, 16, 64], "producers": [1, 2]}, "start": {"producers": 0}}}]})");
  ASSERT_EQ(place_.run({"sweep", "s.json", "--out", "out", "--device", "cpu"}).code, 0);
  for (const Json& row : cells_of(place_ / "out" / "rows.jsonl")) {
    const Json& params = row["params"];
    EXPECT_LE(params["window"].get<int>() * params["producers"].get<int>(), 16) << params;
  }
}

TEST_F(Sweep, TuneSearchesOpenAxesWithEqualBudgets) {
  place_.write("s.json", R"({"run": {"messages": 200, "warmup": 0, "repetitions": 2},
      "constraints": [{"product": ["payload", "window"], "max": "64Ki"}],
      "axes": {"queue": ["host_polled", "gpu_ring"], "transfer": "pinned", "payload": [64, "1Ki"], "window": [4, 64],
               "batch": 4},
      "zip": [["payload", "window"]]})");
  const Words tune{"tune", "s.json", "--seconds-each", "0.3", "--device", "cpu"};
  Words dry = tune;
  dry.emplace_back("--dry-run");
  const std::string planned = place_.run(dry).out;
  std::istringstream lines(planned);
  int searches = 0;
  for (std::string line; std::getline(lines, line); ++searches) {
    EXPECT_NE(line.find(" window"), line.npos) << line;
    EXPECT_NE(line.find(" producers"), line.npos) << "an axis of the experiment: " << line;
    EXPECT_EQ(line.substr(line.find(" over ")).find(" batch"), line.npos) << "the part fixes the batch: " << line;
    EXPECT_EQ(line.find(" lanes") != line.npos, line.find("gpu_ring") != line.npos) << line;
  }
  EXPECT_EQ(searches, 4) << planned << "\none search for each queue and payload";

  Words wet = tune;
  wet.insert(wet.end(), {"--out", "out"});
  ASSERT_EQ(place_.run(wet).code, 0);
  EXPECT_EQ(place_.run({"validate", "out/rows.jsonl"}).code, 0);
  std::map<std::string, double> spent;  // keyed by search
  std::map<std::string, int> found;     // keyed by point
  for (const Json& row : cells_of(place_ / "out" / "rows.jsonl")) {
    const Json& params = row.at("params");
    EXPECT_EQ(params["batch"], 4);
    if (row.contains("search")) {
      spent[params["queue"].get<std::string>() + params["payload_bytes"].dump()] +=
          row["time"]["duration_seconds"].get<double>();
    } else {
      ++found[params.dump()];
    }
  }
  EXPECT_EQ(spent.size(), 4u);
  for (const auto& [search, seconds] : spent) EXPECT_GE(seconds, 0.3) << search;
  EXPECT_EQ(found.size(), 4u);

  // The result is a spec that measures the same points again.
  const Outcome again = place_.run({"sweep", "out/found.json", "--out", "again", "--device", "cpu"});
  ASSERT_EQ(again.code, 0) << again.err;
  std::map<std::string, int> measured;
  for (const Json& row : cells_of(place_ / "again" / "rows.jsonl")) ++measured[row.at("params").dump()];
  EXPECT_EQ(measured, found);
}

TEST_F(Sweep, AllStandsForEveryMemberOfAnAxis) {
  place_.write("s.json", R"({"axes": {"queue": "all", "transfer": "all", "payload": 64}})");
  const Json catalogue = Json::parse(place_.run({"list", "--json"}).out);
  for (const char* spec : {"s.json", "feeding"}) {
    const std::string planned = place_.run({"sweep", spec, "--dry-run", "--device", "cpu"}).out;
    for (const Json& queue : catalogue.at("queues")) {
      const std::string name = queue.at("name");
      EXPECT_NE(planned.find(" " + name), std::string::npos) << name << " is not in " << spec;
    }
    for (const Json& transfer : catalogue.at("transfers")) {
      const std::string name = transfer.at("name");
      EXPECT_NE(planned.find("+ " + name), std::string::npos) << name << " is not in " << spec;
    }
  }
  const std::string touched =
      place_.run({"sweep", "s.json", "--axis", "queue=null", "--axis", "touch=all", "--dry-run", "--device", "cpu"})
          .out;
  EXPECT_EQ(std::ranges::count(touched, '\n'), 1) << "a word of the axis itself has precedence\n" << touched;
}

TEST_F(Sweep, ResumedSweepMeasuresTheSameWinnersAfresh) {
  place_.write("s.json", R"({"run": {"messages": 200, "warmup": 0, "repetitions": 2},
      "axes": {"queue": ["host_polled", "gpu_ring"], "transfer": "pinned", "payload": 64, "window": [4, 64], "batch": 4}})");
  ASSERT_EQ(place_.run({"sweep", "s.json", "--out", "out", "--device", "cpu"}).code, 0);
  const auto afresh = [&] {
    std::multiset<std::string> points;
    for (const Json& row : cells_of(place_ / "out" / "rows.jsonl")) {
      if (!row.contains("afresh")) continue;
      EXPECT_EQ(row["afresh"]["of"], 2);
      EXPECT_TRUE(row["repetition"] == 4 || row["repetition"] == 5) << row["repetition"];
      points.insert(row["params"].dump());
    }
    return points;
  };
  const auto before = afresh();
  EXPECT_EQ(before.size(), 2u * 2) << "the best point of each queue, twice";
  std::vector<std::string> kept;
  std::istringstream lines(read_text(place_ / "out" / "rows.jsonl"));
  for (std::string line; std::getline(lines, line);) kept.push_back(line);
  std::string shortened;
  for (std::size_t i = 0; i + 1 < kept.size(); ++i) shortened += kept[i] + "\n";
  place_.write("out/rows.jsonl", shortened);
  ASSERT_EQ(place_.run({"sweep", "--resume", "out", "--device", "cpu"}).code, 0);
  EXPECT_EQ(afresh(), before);
}

/// Lines that the executable prints on an 80-column terminal, including every state of the progress line.
std::vector<std::string> lines_on_a_terminal(Words words, const fs::path& folder) {
  words.insert(words.begin(), executable());
  std::vector<char*> raw;
  for (std::string& word : words) raw.push_back(word.data());
  raw.push_back(nullptr);
  winsize size{24, 80, 0, 0};
  int terminal = -1;
  const pid_t child = forkpty(&terminal, nullptr, nullptr, &size);
  if (child == 0) {
    if (chdir(folder.c_str()) == 0) execvp(raw[0], raw.data());
    _exit(127);
  }
  std::string text;
  char bytes[4096];
  for (ssize_t n = 0; (n = read(terminal, bytes, sizeof bytes)) > 0;) text.append(bytes, static_cast<std::size_t>(n));
  waitpid(child, nullptr, 0);
  close(terminal);
  std::vector<std::string> lines(1);
  for (const char c : text) {
    if (c == '\r' || c == '\n') {
      lines.emplace_back();
    } else {
      lines.back() += c;
    }
  }
  for (std::string& line : lines) {
    if (constexpr std::string_view kClear = "\033[K"; line.starts_with(kClear)) line.erase(0, kClear.size());
  }
  return lines;
}

TEST_F(Sweep, ProgressFitsATerminalAndIsUncutInAFile) {
  place_.write("s.json", R"({"run": {"messages": 100, "warmup": 0, "repetitions": 1}, "axes": {"queue": "host_polled",
      "transfer": "pageable,pinned", "payload": "64Ki", "window": "1,256,1Ki", "batch": "1,64", "streams": "4"}})");
  int shown = 0, cut = 0;
  for (const std::string& line : lines_on_a_terminal(
           {"sweep", "s.json", "--out", "terminal", "--device", "cpu", "--floor-rounds", "0", "--keep-disturbed"},
           place_.path())) {
    if (!line.starts_with("[")) continue;
    ++shown;
    cut += line.ends_with("…") ? 1 : 0;
    const auto columns = std::count_if(line.begin(), line.end(), [](unsigned char c) { return (c & 0xC0) != 0x80; });
    EXPECT_LE(columns, 80) << line;
  }
  EXPECT_GE(shown, 10);
  EXPECT_GE(cut, 1) << "no line was cut, so the test proves nothing";
  const Outcome outcome = place_.run({"sweep", "s.json", "--out", "out", "--device", "cpu", "--axis", "window=256"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("window=256"), std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.err.find("…"), std::string::npos) << outcome.err;
}

TEST_F(Sweep, SearchWithNothingToMeasureIsReported) {
  place_.write("s.json", R"({"run": {"messages": 200, "warmup": 0, "repetitions": 1}, "parts": [
      {"axes": {"queue": "host_polled", "transfer": "bulk_async,pinned", "payload": 64},
       "search": {"seconds": 0.1, "axes": {"window": [64, 256]}}}]})");
  const Outcome outcome = place_.run({"sweep", "s.json", "--out", "out", "--device", "cpu"});
  EXPECT_EQ(outcome.code, 0);
  std::istringstream lines(outcome.err);
  int none = 0, some = 0;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("search ")) continue;
    none += line.find("nothing to measure") != line.npos && line.find("bulk_async") != line.npos ? 1 : 0;
    some += line.find(" tries ") != line.npos && line.find("pinned") != line.npos ? 1 : 0;
  }
  EXPECT_EQ(none, 1) << outcome.err;
  EXPECT_EQ(some, 1) << outcome.err;
}

TEST_F(Sweep, SpecsOfTheRepositoryCanBePlanned) {
  const fs::path specs = source_dir() / "experiments" / "specs";
  if (!fs::is_directory(specs) || fs::is_empty(specs)) GTEST_SKIP() << "no specs in " << specs;
  for (const auto& entry : fs::directory_iterator(specs)) {
    const bool capacity = Json::parse(read_text(entry.path())).contains("capacity");
    Words words{capacity ? "capacity" : "sweep", entry.path(), "--dry-run", "--device", "cpu"};
    if (Json::parse(read_text(entry.path())).value("experiment", "") == "storage") {  // this machine may have less room
      words.insert(words.end(), {"--axis", "size=16Mi", "--axis", "folder=."});
    }
    const Outcome outcome = place_.run(words);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    // A sweep prints its cells or searches; a capacity search prints its plan.
    const std::string& said = capacity ? outcome.err : outcome.out;
    const bool feeding = Json::parse(read_text(entry.path())).value("experiment", "feeding") == "feeding";
    EXPECT_NE(said.find(capacity  ? "bound"
                        : feeding ? "payload="
                                  : "rep 0"),
              said.npos)
        << entry.path() << ": " << said;
  }
}

}  // namespace
}  // namespace feedrate::cli_test
