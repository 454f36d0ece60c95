// The storage experiment as users run it.
#include "tests/cli/feedrate_process.hpp"

namespace feedrate::cli_test {
namespace {

class StorageCommand : public testing::Test {
 protected:
  /// Runs a shell command, in which `feedrate` is the executable.
  int shell(const std::string& command) {
    Process process({"/bin/bash", "-c", "feedrate() { " + executable() + " \"$@\"; }; " + command}, place_.path(),
                    place_ / "shell");
    const int code = process.wait();
    out_ = process.out();
    err_ = process.err();
    return code;
  }
  Workplace place_;
  std::string out_, err_;
};

TEST_F(StorageCommand, TrialOfARegisteredMappingComparesTheBytes) {
  place_.write("file", std::string(100'000, 'x'));
  EXPECT_EQ(shell("feedrate helper storage 3<file"), 0) << err_;
  EXPECT_NE(shell("feedrate helper storage 3<&-"), 0);
  EXPECT_NE(err_.find("this one is internal to the storage experiment"), std::string::npos) << err_;
  place_.write("empty", "");
  EXPECT_NE(shell("feedrate helper storage 3<empty"), 0);
}

TEST_F(StorageCommand, FileSizeLimitFailsTheRow) {
  const std::string run =
      "feedrate run --experiment storage --device cpu --folder . --block 64Ki --seconds 0.02 --warmup 0 --json "
      "--floor-rounds 1 --size ";
  EXPECT_EQ(shell("ulimit -f 2048; " + run + "4Mi"), 1) << err_;
  const Json row = measured_in(out_).at(0);
  EXPECT_EQ(row.at("status"), "failed");
  EXPECT_NE(row.at("reason").get<std::string>().find("/0.bin: File too large"), std::string::npos) << row.at("reason");
  EXPECT_EQ(shell("ulimit -f 2048; " + run + "1Mi"), 0) << err_;
}

TEST_F(StorageCommand, FilesOfAKilledRunAreRemovedByTheNextOne) {
  const std::string run =
      "feedrate run --experiment storage --device cpu --folder . --size 1Mi --block 64Ki --warmup 0 --floor-rounds 1 ";
  const auto sets = [&] {
    const Words names = place_.contents();
    return std::ranges::count_if(names, [](const std::string& name) { return name.starts_with("feedrate-storage-"); });
  };
  {
    Process killed({"/bin/bash", "-c", "exec " + executable() + run.substr(8) + "--seconds 600"}, place_.path(),
                   place_ / "killed");
    ASSERT_TRUE(await([&] { return sets() == 1; })) << killed.err();
    EXPECT_EQ(shell(run + "--seconds 0.02"), 0) << err_;
    EXPECT_EQ(sets(), 1) << "a live process keeps its files";
    killed.signal(SIGKILL);
    killed.wait();
  }
  place_.write("s.json", R"({"experiment": "storage", "axes": {"block": "64Ki", "folder": ".", "size": "1Mi"}})");
  EXPECT_EQ(shell("feedrate sweep s.json --device cpu --out out --dry-run"), 0) << err_;
  EXPECT_EQ(sets(), 1) << "a dry run removes nothing";
  EXPECT_EQ(shell(run + "--seconds 0.02"), 0) << err_;
  EXPECT_EQ(sets(), 0);
}

TEST_F(StorageCommand, TooLittleRoomForAllFileSetsIsReportedBeforeTheSweep) {
  // One of the two sets would fit.
  const std::uint64_t size = fs::space(place_.path()).available / 64 * 6 / 10 >> 20;
  place_.write("s.json", R"({"experiment": "storage", "axes": {"operation": ["read", "write"], "block": "64Ki",
                             "files": 64, "folder": ".", "size": ")" +
                             std::to_string(size) + "Mi\"}}");
  const std::string said = "--folder: invalid value '.'; allowed: a folder with at least " +
                           std::to_string(128 * size << 20) + " bytes of free space";
  for (const char* dry : {"", " --dry-run"}) {
    EXPECT_EQ(shell(std::string("feedrate sweep s.json --device cpu --out out") + dry), 2) << dry;
    EXPECT_NE(err_.find(said), std::string::npos) << err_;
    EXPECT_FALSE(fs::exists(place_ / "out"));
  }
}

TEST_F(StorageCommand, TraceShowsTheTimedPhase) {
  EXPECT_EQ(shell("feedrate run --experiment storage --device cpu --folder . --size 1Mi --block 64Ki --seconds 0.02 "
                  "--floor-rounds 1 --trace trace.json"),
            0)
      << err_;
  EXPECT_EQ(err_.find("no timeline"), std::string::npos) << err_;
  EXPECT_EQ(Json::parse(read_text(place_ / "trace.json")).at("otherData").at("params").at("block_bytes"), 65536);
}

TEST_F(StorageCommand, LackOfMemoryFailsTheRow) {
  const std::string run =
      "ulimit -v 3000000; feedrate run --experiment storage --device cpu --folder . --size 16Mi --seconds 0.02 "
      "--warmup 0 --json --floor-rounds 1 --engine ";
  EXPECT_EQ(shell(run + "pread --block 16Mi --depth 256"), 1) << err_;  // 8 GiB of device memory
  const std::string reason = measured_in(out_).at(0).at("reason");
  EXPECT_EQ(reason, "cannot allocate 8589934592 bytes of memory");
  EXPECT_EQ(shell(run + "pread_pinned --block 16Mi --depth 256"), 1) << err_;
  EXPECT_NE(measured_in(out_).at(0).at("reason").get<std::string>().find("bytes of staging memory"), std::string::npos);
  EXPECT_EQ(shell(run + "pread --block 64Ki --depth 4"), 0) << err_;
}

}  // namespace
}  // namespace feedrate::cli_test
