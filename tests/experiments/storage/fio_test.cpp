#include "experiments/storage/fio.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "common/error.hpp"
#include "tests/support/temp_dir.hpp"

namespace feedrate::storage {
namespace {

std::string failure(std::string_view text) {
  try {
    fio_bytes_per_second(text, true);
  } catch (const Failure& failure) {
    return failure.what();
  }
  return "accepted";
}

TEST(FioTest, RateOfTheDirectionIsRead) {
  const char* const text =
      "fio: a warning\n{\"jobs\": [{\"read\": {\"bw_bytes\": 12}, \"write\": {\"bw_bytes\": 34.5}}]}";
  EXPECT_EQ(fio_bytes_per_second(text, true), 12);
  EXPECT_EQ(fio_bytes_per_second(text, false), 34.5);
}

TEST(FioTest, OutputWithoutARateIsReported) {
  EXPECT_EQ(failure(""), "fio did not run; install it (Debian package fio)");
  for (const char* text : {"fio: engine io_uring not loadable", "{", "[]", "{\"jobs\": []}", "{\"jobs\": {}}",
                           "{\"jobs\": [7]}", "{\"jobs\": [{\"read\": []}]}",
                           "{\"jobs\": [{\"read\": {\"bw_bytes\": \"x\"}}]}", "{\"jobs\": [{\"read\": {\"bw_by"}) {
    EXPECT_EQ(failure(text), "fio printed no results") << text;
  }
  EXPECT_EQ(failure("{\"jobs\": [{\"read\": {\"bw_bytes\": 0}}]}"), "fio moved no bytes");
  EXPECT_EQ(failure("{\"jobs\": [{\"read\": {\"bw_bytes\": -1}}]}"), "fio moved no bytes");
}

/// A program named fio, which the search path contains first.
class FakeFio : public testing::Test {
 protected:
  std::string run(const std::string& script, const std::string& path) {
    const std::string program = folder_ / "fio";
    std::ofstream(program) << "#!/bin/sh\n" << script;
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
    const std::string before = std::getenv("PATH");
    ::setenv("PATH", (folder_.path().string() + ":" + before).c_str(), 1);
    std::string result;
    try {
      result = std::to_string(read_fio({4096, 1, 1, true, true}, {path, 4096}));
    } catch (const Failure& failure) {
      result = failure.what();
    }
    ::setenv("PATH", before.c_str(), 1);
    return result;
  }
  test::TempDir folder_;
};

TEST_F(FakeFio, FailureOfTheProgramIsReported) {
  const std::string printed = "echo '{\"jobs\": [{\"read\": {\"bw_bytes\": 5000}}]}'\n";
  EXPECT_EQ(run(printed, "/a"), "5000.000000");
  EXPECT_EQ(run(printed + "exit 1", "/a"), "fio failed (exit code 1)");
  EXPECT_EQ(run("yes", "/a"), "fio printed too much");
}

TEST_F(FakeFio, ColonsInAPathDoNotSeparateFiles) {
  run("for word; do case $word in --filename=*) printf %s \"$word\" > " + (folder_ / "seen").string() + ";; esac; done",
      "/a:b'c");
  std::string seen;
  std::getline(std::ifstream(folder_ / "seen"), seen);
  EXPECT_EQ(seen, "--filename=/a\\:b'c");
}

}  // namespace
}  // namespace feedrate::storage
