// Replacement of a file: the old file stays until the new one is complete.
#include "experiments/harness/atomic_file.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdio>
#include <iterator>
#include <string>
#include <system_error>
#include <thread>

#include "tests/support/temp_dir.hpp"

namespace feedrate {
namespace {

namespace fs = std::filesystem;

std::string read(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}
void write(const fs::path& path, const std::string& text) {
  AtomicFile file(path);
  file.stream() << text;
  file.commit();
}

class AtomicFiles : public testing::Test {
 protected:
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_.path()), {}));
  }
  test::TempDir folder_;
};

TEST_F(AtomicFiles, OldTextStaysUntilTheCommit) {
  write(folder_ / "f", "old");
  {
    AtomicFile file(folder_ / "f");
    file.stream() << "new" << std::flush;
    EXPECT_EQ(read(folder_ / "f"), "old");
  }
  EXPECT_EQ(read(folder_ / "f"), "old") << "the new text was not committed";
  write(folder_ / "f", "new");
  EXPECT_EQ(read(folder_ / "f"), "new");
  EXPECT_EQ(files(), 1u);
}

TEST_F(AtomicFiles, LinksAndPermissionsAreKept) {
  write(folder_ / "f", "old");
  fs::permissions(folder_ / "f", fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink("f", folder_ / "link");
  write(folder_ / "link", "new");
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  EXPECT_EQ(read(folder_ / "f"), "new");
  EXPECT_EQ(fs::status(folder_ / "f").permissions(), fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink("nothing", folder_ / "dangling");
  write(folder_ / "dangling", "new");
  EXPECT_EQ(read(folder_ / "nothing"), "new");
}

TEST_F(AtomicFiles, NameMayHave255Bytes) {
  write(folder_ / std::string(255, 'n'), "text");
  EXPECT_EQ(read(folder_ / std::string(255, 'n')), "text");
  EXPECT_THROW(write(folder_ / std::string(256, 'n'), "text"), std::system_error);
  EXPECT_EQ(files(), 1u);
}

TEST_F(AtomicFiles, PipesAreWrittenInPlace) {
  ASSERT_EQ(mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  fs::create_symlink("pipe", folder_ / "link");
  for (const char* name : {"pipe", "link"}) {
    std::string got;
    std::jthread reader([&] { got = read(folder_ / "pipe"); });
    write(folder_ / name, "text");
    reader.join();
    EXPECT_EQ(got, "text");
  }
  EXPECT_TRUE(fs::is_fifo(folder_ / "pipe"));
}

TEST_F(AtomicFiles, TextIsAppendedToOpenDescriptors) {
  std::FILE* const log = std::fopen((folder_ / "log").c_str(), "a");
  const std::string named = "/dev/fd/" + std::to_string(fileno(log));
  std::fputs("before ", log);
  std::fflush(log);
  fs::create_symlink(named, folder_ / "link");
  write(folder_ / "link", "text");
  std::fputs(" behind", log);
  std::fclose(log);
  EXPECT_EQ(read(folder_ / "log"), "before text behind");
  EXPECT_THROW(write("/dev/fd/9999", "text"), std::system_error);
}

TEST_F(AtomicFiles, UnwritablePathsAreErrors) {
  EXPECT_THROW(AtomicFile(folder_.path()), std::system_error);
  EXPECT_THROW(AtomicFile(folder_ / "no/such"), std::system_error);
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "/dev/full does not exist";
  EXPECT_THROW(write("/dev/full", "text"), std::system_error);
}

}  // namespace
}  // namespace feedrate
