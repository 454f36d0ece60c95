// However a sweep ends, its file has complete rows, and --resume adds the missing ones without loss or duplication.
#include <map>
#include <random>
#include <set>

#include "tests/cli/feedrate_process.hpp"
#include "tests/support/long.hpp"

namespace feedrate::cli_test {
namespace {

constexpr auto kSpec = R"({"axes": {"queue": "null,host_polled,gpu_ring", "payload": "64,256,1Ki"},
                           "run": {"repetitions": 2, "seconds": 0.03, "warmup": 0.005}})";

class Resume : public testing::Test {
 protected:
  void SetUp() override {
    place_.read_limits();
    place_.write("s.json", kSpec);
  }

  fs::path rows() const { return place_ / "out" / "rows.jsonl"; }
  std::unique_ptr<Process> begin(const Words& more = {}) {
    Words words{"sweep", "s.json", "--out", "out", "--device", "cpu"};
    words.insert(words.end(), more.begin(), more.end());
    return place_.start(words);
  }
  std::unique_ptr<Process> go_on() { return place_.start({"sweep", "--resume", "out", "--device", "cpu"}); }
  /// Waits until about `n` cells are measured.
  void await_cells(Process& process, int n) {
    const std::string mark = "[" + std::to_string(n) + "/";
    ASSERT_TRUE(await([&] { return process.err().find(mark) != std::string::npos; })) << process.err();
  }
  std::set<std::string> planned(const Words& more = {}) {
    Words words{"sweep", "s.json", "--dry-run", "--device", "cpu"};
    words.insert(words.end(), more.begin(), more.end());
    std::istringstream text(place_.run(words).out);
    std::set<std::string> ids;
    for (std::string number, id, rest; text >> number >> id && std::getline(text, rest);) ids.insert(id);
    return ids;
  }
  /// Checks that all rows are valid and that each planned cell has exactly one row.
  void expect_complete(const std::set<std::string>& plan) {
    EXPECT_EQ(place_.run({"validate", "out/rows.jsonl"}).code, 0);
    std::map<std::string, int> cells, limits;
    for (const Json& row : measured_in(read_text(rows()))) {
      if (row.at("kind") == "limit") {
        ++limits[row.at("limit").at("name")];
      } else {
        ++cells[row.at("id")];
        expect_clean(row);
      }
    }
    for (const auto& [id, times] : cells) {
      EXPECT_EQ(times, 1) << "duplicated: " << id;
      EXPECT_TRUE(plan.contains(id)) << "not planned: " << id;
    }
    for (const auto& id : plan) EXPECT_TRUE(cells.contains(id)) << "lost: " << id;
    for (const auto& [name, times] : limits)
      EXPECT_LE(times, 2) << name << ": must be read at most twice, at the start and at the end";
    EXPECT_TRUE(limits.contains("thread_round_trip_ns"));
    EXPECT_TRUE(limits.contains("host_copy_bytes_per_second"));
  }
  Workplace place_;
};

TEST_F(Resume, InterruptedSweepExits130AndResumesWithItsSettings) {
  const Words settings{"--repetitions", "2", "--seconds", "0.04", "--axis", "payload=128,512"};
  const auto plan = planned(settings);
  EXPECT_EQ(plan.size(), 12u);
  const auto process = begin(settings);
  await_cells(*process, 4);
  process->signal(SIGINT);
  EXPECT_EQ(process->wait(), 130) << process->err();
  EXPECT_NE(process->err().find("to resume: feedrate sweep --resume out"), std::string::npos) << process->err();
  const std::string text = read_text(rows());
  ASSERT_FALSE(text.empty());
  EXPECT_EQ(text.back(), '\n');
  const std::size_t done = cells_of(rows()).size();
  EXPECT_GE(done, 3u);
  EXPECT_LT(done, 12u);
  EXPECT_EQ(place_.run({"validate", "out/rows.jsonl"}).code, 0);
  const auto second = go_on();
  EXPECT_EQ(second->wait(), 0);
  const std::string left = std::to_string(12 - done);
  EXPECT_NE(second->err().find(std::to_string(done) + " cells are done, " + left + " remain"), std::string::npos)
      << second->err();
  EXPECT_NE(second->err().find("[1/" + left + "]"), std::string::npos) << second->err();
  expect_complete(plan);
  for (const Json& row : rows_of(read_text(rows()))) {
    if (row.at("kind") == "run") {
      EXPECT_EQ(row.at("settings").at("seconds"), 0.04) << row;
    }
  }
}

TEST_F(Resume, KillsAtRandomTimesLoseAndDuplicateNoCells) {
  std::mt19937 random(20);
  const Words longer{"--repetitions", "3"};
  const auto plan = planned(longer);
  auto process = begin(longer);
  await_cells(*process, 1);
  int kills = 0;
  for (; kills < 25; ++kills) {
    const auto moment = std::chrono::milliseconds(random() % 250);
    const int code = process->ends_within(moment);
    if (code == 0) break;
    ASSERT_EQ(code, -1) << process->err();
    process->signal(SIGKILL);
    process->wait();
    process = go_on();
  }
  EXPECT_EQ(process->wait(), 0) << process->err();
  EXPECT_GE(kills, 10);
  expect_complete(plan);
  const std::string done = read_text(rows());
  EXPECT_EQ(go_on()->wait(), 0);
  EXPECT_EQ(read_text(rows()), done) << "nothing was left to do";
}

TEST_F(Resume, FileCutAnywhereIsCompleted) {
  const Words small{"--repetitions", "1", "--axis", "payload=64"};
  ASSERT_EQ(begin(small)->wait(), 0);
  const std::string text = read_text(rows());
  const auto run_end = text.find('\n') + 1, limit_end = text.find('\n', run_end) + 1,
             last = text.rfind('\n', text.size() - 2) + 1;
  ASSERT_EQ(Json::parse(text.substr(run_end, limit_end - run_end)).at("kind"), "limit");
  for (const std::size_t kept : {limit_end, last + 1, text.size() - 1}) {
    write_text(rows(), text.substr(0, kept));
    EXPECT_EQ(go_on()->wait(), 0);
    expect_complete(planned(small));
  }
}

/// Resumes a finished folder with different settings.
class OtherResume : public Resume {
 protected:
  void SetUp() override {
    place_.write("s.json", kSmall);
    ASSERT_EQ(begin()->wait(), 0);
    fs::rename(place_ / "out", place_ / "finished");
    restore();
  }
  /// Undoes what resumed commands did.
  void restore() {
    fs::remove_all(place_ / "out");
    fs::copy(place_ / "finished", place_ / "out");
    before_ = read_text(rows());
  }
  /// Checks that the resume is rejected, that the message contains all of `said`, that the rows are unchanged, and that
  /// `--resume-anyway` accepts the folder.
  void expect_rejected(const Words& arguments, const Words& said) {
    const Outcome outcome = place_.run(arguments);
    EXPECT_EQ(outcome.code, 2) << outcome.err;
    for (const std::string& each : said) EXPECT_NE(outcome.err.find(each), std::string::npos) << outcome.err;
    EXPECT_EQ(read_text(rows()), before_);
    Words anyway = arguments;
    anyway.emplace_back("--resume-anyway");
    EXPECT_EQ(place_.run(anyway).code, 0);
  }
  /// Changes every row, as if it came from another machine or build.
  void doctor(const std::string& from, const std::string& to) {
    for (std::size_t at = 0; (at = before_.find(from, at)) != before_.npos; at += to.size())
      before_.replace(at, from.size(), to);
    write_text(rows(), before_);
  }
  static constexpr auto kSmall = R"({"axes": {"queue": "null", "payload": "64,256"},
                                     "run": {"repetitions": 1, "seconds": 0.02, "warmup": 0}})";
  std::string before_;
};

TEST_F(OtherResume, DifferentSpecSettingsOrAxisAreRejected) {
  place_.write("other.json", R"({"name": "s", "axes": {"queue": "null", "payload": "64,512"},
                                 "run": {"repetitions": 1, "seconds": 0.02, "warmup": 0}})");
  const Words resume{"sweep", "--resume", "out", "--device", "cpu"};
  const auto with = [&](const Words& more) {
    Words words = resume;
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  expect_rejected(with({"other.json"}), {"payload", "64,256", "64,512"});
  restore();
  expect_rejected(with({"--seconds", "0.03"}), {"spec.run.seconds", "0.02 in the folder", "0.03 now"});
  restore();
  expect_rejected(with({"--axis", "payload=128"}), {"payload", "128"});
}

TEST_F(OtherResume, DifferentDeviceMachineOrBuildIsRejected) {
  const Json environment = run_in(rows_of(before_)).at("environment");
  const std::string cpu = environment.at("cpu").dump();
  struct Other {
    std::string from, to;
    Words said;
  };
  for (const auto& [from, to, said] :
       {Other{R"("device":"cpu")", R"("device":"cuda")", {"device", "\"cuda\" in the folder", "\"cpu\" now"}},
        Other{"\"cpu\":" + cpu, R"("cpu":"Z80")", {"cpu", "Z80", cpu}},
        Other{"\"revision\":" + environment.at("revision").dump(),
              R"("revision":"0123456789ab")",
              {"revision", "0123456789ab"}}}) {
    restore();
    doctor(from, to);
    expect_rejected({"sweep", "--resume", "out", "--device", "cpu"}, said);
  }
}

TEST_F(OtherResume, EditedSpecInTheFolderIsRejected) {
  std::string spec = read_text(place_ / "out" / "spec.json");
  spec.replace(spec.find("64,256"), 6, "64,512");
  write_text(place_ / "out" / "spec.json", spec);
  expect_rejected({"sweep", "--resume", "out", "--device", "cpu"}, {"spec.json", "edited"});
  EXPECT_EQ(place_.run({"sweep", "--resume", "out", "--device", "cpu"}).code, 0)
      << "the edited spec must be accepted once --resume-anyway has accepted it";
}

TEST_F(OtherResume, ResumeAnywayRequiresResume) {
  const Outcome outcome = place_.run({"sweep", "s.json", "--out", "new", "--device", "cpu", "--resume-anyway"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("--resume-anyway"), std::string::npos) << outcome.err;
}

TEST_F(Resume, FolderInUseIsRejected) {
  const auto process = begin({"--repetitions", "20"});
  await_cells(*process, 3);
  const Outcome second = place_.run({"sweep", "s.json", "--resume", "out", "--device", "cpu", "--repetitions", "20"});
  EXPECT_EQ(second.code, 2);
  EXPECT_NE(second.err.find("another process"), std::string::npos) << second.err;
  process->signal(SIGINT);
  EXPECT_EQ(process->wait(), 130) << process->err();
  for (const Json& cell : cells_of(rows())) expect_clean(cell);
}

double cpu_seconds_of(const Process& process) {
  const std::string stat = read_text(fs::path("/proc") / std::to_string(process.id()) / "stat");
  std::istringstream fields(stat.substr(stat.rfind(')') + 2));
  std::string field;
  double user = 0, system = 0;
  for (int i = 3; i < 14; ++i) fields >> field;
  fields >> user >> system;
  return (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

/// A message with the long payload takes many seconds, and a batch in progress cannot be stopped. The time during which
/// the process is stopped counts as well.
TEST_F(Resume, SweepRestartsAfterACellThatCannotBeStopped) {
  if (!test::long_tests()) GTEST_SKIP() << "takes 40 s; runs in a long run";
  place_.write("hang.json", R"({"axes": {"queue": "host_polled", "workload": "fma_chain", "flops-per-byte": 65536,
                                         "payload": "4,256Ki", "window": 1, "batch": 1},
                                "run": {"seconds": 0.02, "warmup": 0, "watchdog": 0.5}})");
  const auto process =
      place_.start({"sweep", "hang.json", "--out=out", "--device", "cpu"}, {{"FEEDRATE_FLOOR_ROUNDS", "0"}});
  ASSERT_TRUE(await([&] { return cpu_seconds_of(*process) > 3; })) << process->err();
  process->signal(SIGSTOP);
  std::this_thread::sleep_for(Seconds(33));
  process->signal(SIGCONT);
  EXPECT_EQ(process->wait(), 1) << process->err();
  EXPECT_NE(process->err().find("restarting the process"), std::string::npos) << process->err();
  const auto cells = cells_of(rows());
  ASSERT_EQ(cells.size(), 2u) << "both cells have a row, and the hanging cell was not tried again";
  for (const Json& cell : cells) {
    if (cell.at("params").at("payload_bytes") == 4) {
      expect_clean(cell);
    } else {
      EXPECT_EQ(cell.at("status"), "failed");
      EXPECT_EQ(cell.at("cause"), "hung");
      EXPECT_NE(cell.at("reason").get<std::string>().find("could not be stopped"), std::string::npos);
    }
  }
  EXPECT_EQ(place_.run({"validate", "out/rows.jsonl"}).code, 0);
}

}  // namespace
}  // namespace feedrate::cli_test
