// The handoff experiment: the executable starts its readers as separate processes.
#include "tests/cli/feedrate_process.hpp"

namespace feedrate::cli_test {
namespace {

class HandoffCommand : public testing::Test {
 protected:
  static Words words(const std::string& way, const Words& more = {}) {
    Words all{"run", "--experiment", "handoff", "--device", "cpu", "--way", way, "--json"};
    for (const auto& [option, value] : {std::pair{"--bytes", "16Ki"}, std::pair{"--seconds", "0.05"}}) {
      if (std::ranges::find(more, option) == more.end()) all.insert(all.end(), {option, value});
    }
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  Json row(const std::string& way, Words more = {}) {
    const Outcome outcome = place_.run(words(way, std::move(more)));
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    for (Json& row : measured_in(outcome.out)) {
      if (row.at("kind") == "cell") return row;
    }
    ADD_FAILURE() << outcome.out;
    return {};
  }
  /// Readers of this parent process only, because other tests may run at the same time.
  static std::vector<pid_t> readers_of(pid_t parent) {
    std::vector<pid_t> found = processes_naming(std::string("helper\0handoff", 14));
    std::erase_if(found, [parent](pid_t reader) {
      const std::string status = read_text("/proc/" + std::to_string(reader) + "/status");
      return status.find("PPid:\t" + std::to_string(parent) + "\n") == std::string::npos;
    });
    return found;
  }

  Workplace place_;
};

TEST_F(HandoffCommand, EveryWayIsVerifiedAndLeavesNoFiles) {
  for (const std::string way : {"ipc_memfd", "shm_copy", "shm_pinned", "store"}) {
    for (const std::string use : {"cached", "first"}) {
      const Json found = row(way, {"--use", use, "--tensors", "3", "--readers", "2"});
      ASSERT_EQ(found.at("status"), "ok") << found;
      EXPECT_GE(found.at("details").at("verified").at("tensors"), 6);
      EXPECT_EQ(found.at("details").at("verified").at("wrong"), 0);
      const Json& figures = found.at("figures");
      EXPECT_GE(figures.at("handoff_ns").at("p50"), figures.at("to_start_ns").at("p50"));
      EXPECT_EQ(figures.contains("create_ns"), use == "first") << way;
      EXPECT_EQ(figures.contains("delete_ns"), use == "first") << way;
      const bool moves = way.starts_with("shm");
      EXPECT_EQ(found.at("cost").at("device_bytes"), 3 * 16384 * (moves ? 3 : 1)) << way;
      EXPECT_EQ(found.at("cost").at("host_bytes"), 3 * 16384 * (moves ? 1 : 0)) << way;
    }
  }
  EXPECT_TRUE(place_.temporary_empty()) << "the store left its folder";
}

TEST_F(HandoffCommand, MaximumNumberOfTensorsIsVerified) {
  const Json found = row("ipc_memfd", {"--use", "first", "--tensors", "32", "--bytes", "4Ki"});
  ASSERT_EQ(found.at("status"), "ok") << found;
  EXPECT_GE(found.at("details").at("verified").at("tensors"), 32);
}

TEST_F(HandoffCommand, WayThroughRedisIsVerified) {
  FEEDRATE_NEEDS_REDIS();
  for (const std::string use : {"cached", "first"}) {
    const Json found = row("redis_value", {"--use", use, "--readers", "2"});
    ASSERT_EQ(found.at("status"), "ok") << found;
    EXPECT_EQ(found.at("details").at("verified").at("wrong"), 0);
  }
}

TEST_F(HandoffCommand, ImpossiblePointsStateTheReason) {
  const auto why = [&](const std::string& way, Words more) {
    const Outcome outcome = place_.run(words(way, std::move(more)));
    return std::to_string(outcome.code) + " " + outcome.out + outcome.err;
  };
  EXPECT_NE(why("ipc_vmm", {}).find("it shares a GPU's memory"), std::string::npos) << why("ipc_vmm", {});
  EXPECT_NE(why("store", {"--to", "other"}).find("this machine has no second GPU"), std::string::npos);
  EXPECT_NE(why("redis_value", {"--bytes", "1Gi"}).find("a Redis value cannot exceed 512 MiB"), std::string::npos);
  EXPECT_NE(why("shm_copy", {"--bytes", "8Gi", "--tensors", "4"}).find("more than the 16 GiB allowed"),
            std::string::npos);
  EXPECT_EQ(why("carrier_pigeon", {}).substr(0, 2), "2 ");
  EXPECT_EQ(why("store", {"--readers", "17"}).substr(0, 2), "2 ");
}

TEST_F(HandoffCommand, DeadReaderFailsItsCellAndIsReplaced) {
  const auto run = place_.start(words("ipc_memfd", {"--seconds", "1.5", "--repetitions", "2"}));
  std::vector<pid_t> found;
  ASSERT_TRUE(await([&] { return !(found = readers_of(run->id())).empty(); }));
  for (const pid_t reader : found) kill(reader, SIGKILL);
  run->wait();
  std::vector<std::string> statuses, reasons;
  for (const Json& row : measured_in(run->out())) {
    if (row.at("kind") != "cell") continue;
    statuses.push_back(row.at("status"));
    reasons.push_back(row.at("reason"));
  }
  ASSERT_GE(statuses.size(), 2u) << run->out();
  EXPECT_EQ(statuses[0], "failed");
  EXPECT_NE(reasons[0].find("a reader ended"), std::string::npos) << reasons[0];
  EXPECT_EQ(statuses.back(), "ok") << reasons.back();
}

TEST_F(HandoffCommand, KilledRunLeavesNoProcess) {
  const auto run = place_.start(words("store", {"--seconds", "60"}));
  const std::string parent = "--parent" + std::string(1, '\0') + std::to_string(run->id());
  const auto others = [&] {
    auto found = processes_naming(parent);
    for (const pid_t reader : readers_of(run->id())) found.push_back(reader);
    return found;
  };
  std::vector<pid_t> found;
  ASSERT_TRUE(await([&] { return (found = others()).size() == 2; })) << run->err();
  run->signal(SIGKILL);
  run->wait();
  for (const pid_t one : found) {
    EXPECT_TRUE(
        await([&] { return kill(one, 0) != 0 || read_text("/proc/" + std::to_string(one) + "/cmdline").empty(); }));
  }
}

TEST_F(HandoffCommand, ReaderStartedByHandIsRejected) {
  const Outcome outcome = place_.run({"helper", "handoff"});
  EXPECT_NE(outcome.code, 0);
  EXPECT_NE(outcome.err.find("this one is internal to the handoff experiment"), std::string::npos) << outcome.err;
}

}  // namespace
}  // namespace feedrate::cli_test
