#include "experiments/storage/block_load.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <deque>
#include <fstream>

#include "common/error.hpp"
#include "experiments/harness/load/offer.hpp"
#include "experiments/storage/options.hpp"
#include "kernels/storage/content.hpp"
#include "tests/support/temp_dir.hpp"

namespace feedrate::storage {
namespace {

enum class Fault { none, flipped_bit, stale_block, other_file, short_read, error, lost };

/// Copies blocks with correct contents to CPU device memory, except for one with a fault.
class FaultyEngine final : public Engine {
 public:
  FaultyEngine(const FileSet& files, Fault fault) : files_(files), fault_(fault) {}
  bool submit(const Request& request) override {
    if (pending_.size() == 4) return false;
    const bool faulty = ++count_ == 11;
    const unsigned file = faulty && fault_ == Fault::other_file ? 1 - request.file : request.file;
    if (!faulty || fault_ != Fault::stale_block) {
      fill_content(request.device, request.bytes, files_.key(file, 0), request.offset);
    }
    if (faulty && fault_ == Fault::flipped_bit) request.device[4095] ^= std::byte{1};
    if (faulty && fault_ == Fault::lost) return true;
    Completion end{request.id, 0, request.bytes};
    if (faulty && fault_ == Fault::short_read) end.bytes -= 512;
    if (faulty && fault_ == Fault::error) end.error = EIO;
    pending_.push_back(end);
    return true;
  }
  std::size_t poll(std::span<Completion> ended) override {
    if (ended.empty() || pending_.empty()) return 0;
    ended[0] = pending_.back();  // not in the order of submission
    pending_.pop_back();
    return 1;
  }

 private:
  const FileSet& files_;
  Fault fault_;
  unsigned count_ = 0;
  std::deque<Completion> pending_;
};

class BlockLoadTest : public testing::Test {
 protected:
  static constexpr std::size_t kBlock = 4096;
  LoadResult run(Fault fault) {
    const Pattern pattern("random", files.bytes() / kBlock, 0, 1, 1);
    BlockLoad load(std::make_unique<FaultyEngine>(files, fault), *device, files, pattern,
                   {.block = kBlock, .depth = 4, .once = true});
    LoadResult result = offer(load, {.seconds = 60, .window = load.window(), .watchdog_seconds = 2, .interrupted = [&] {
                                       return load.exhausted();
                                     }});
    requested = load.requested();
    return result;
  }
  std::string failure(Fault fault) {
    try {
      run(fault);
    } catch (const Failure& found) {
      return found.what();
    }
    return "accepted";
  }
  std::uint64_t requested = 0;
  test::TempDir folder;
  std::unique_ptr<Device> device = open_cpu_device();
  FileSet files{{folder.path().string(), 2, 64 * kBlock}, 1, 0};
};

TEST_F(BlockLoadTest, AcceptsEveryBlockOnce) {
  // The first window and the requests in flight at the end do not count.
  const std::uint64_t counted = run(Fault::none).latency.samples();
  EXPECT_LE(counted, 2 * 64 - 8u);
  EXPECT_GE(counted, 2 * 64 - 2 * 8u);
  EXPECT_EQ(requested, 2 * 64 * kBlock);
}

TEST_F(BlockLoadTest, NoFaultIsAccepted) {
  EXPECT_NE(failure(Fault::flipped_bit).find("1 of 512 words are wrong"), std::string::npos)
      << failure(Fault::flipped_bit);
  EXPECT_NE(failure(Fault::stale_block).find("512 of 512 words are wrong"), std::string::npos);
  EXPECT_NE(failure(Fault::other_file).find("512 of 512 words are wrong"), std::string::npos);
  EXPECT_NE(failure(Fault::short_read).find("the file ended: 3584 of 4096 bytes"), std::string::npos);
  EXPECT_NE(failure(Fault::error).find("Input/output error"), std::string::npos);
  EXPECT_NE(failure(Fault::lost).find("no request has ended"), std::string::npos);
}

TEST_F(BlockLoadTest, CompletionWithoutDataIsFoundIfItsMemoryHeldTheSameBlock) {
  const FileSet one({folder.path().string(), 1, kBlock}, 1, 0);
  const Pattern pattern("sequential", 1, 0, 1, 1);
  BlockLoad load(std::make_unique<FaultyEngine>(one, Fault::stale_block), *device, one, pattern,
                 {.block = kBlock, .depth = 4});
  EXPECT_THROW(offer(load, {.seconds = 60,
                            .window = load.window(),
                            .watchdog_seconds = 2,
                            .interrupted = [&] { return load.requested() > 100 * kBlock; }}),
               Failure);
}

TEST_F(BlockLoadTest, FailureNamesFileAndOffset) {
  const std::string text = failure(Fault::error);
  EXPECT_NE(text.find(folder.path().string()), std::string::npos) << text;
  EXPECT_NE(text.find("at offset "), std::string::npos) << text;
}

TEST(FileSetTest, FilesHaveTheContentsOfTheirKeyAndAreRemoved) {
  const test::TempDir folder;
  std::string path;
  {
    const FileSet files({folder.path().string(), 2, 10'000}, 3, 5);
    path = files.files()[1].path;
    std::vector<std::uint64_t> words(1250);
    std::ifstream(path, std::ios::binary).read(reinterpret_cast<char*>(words.data()), 10'000);
    std::uint64_t first = 0;
    EXPECT_EQ(count_wrong(reinterpret_cast<std::byte*>(words.data()), 10'000, files.key(1, 5), 0, first), 0u);
    EXPECT_NE(count_wrong(reinterpret_cast<std::byte*>(words.data()), 10'000, files.key(0, 5), 0, first), 0u);
    EXPECT_NE(count_wrong(reinterpret_cast<std::byte*>(words.data()), 10'000, files.key(1, 4), 0, first), 0u);
    files.make(Residency::warm);
    EXPECT_EQ(files.resident_share(), 1.0);
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(FileSetTest, FilesOfAProcessThatHasEndedAreRemoved) {
  const test::TempDir folder;
  const FileSet live({folder.path().string(), 1, 4096}, 1, 0);
  const auto dead = folder / "feedrate-storage-000000", unlocked = folder / "feedrate-storage-000001";
  for (const auto& each : {dead, unlocked}) {
    std::filesystem::create_directory(each);
    std::ofstream(each / "0.bin") << "contents";
  }
  std::ofstream(dead / "lock").flush();
  const FileSet next({folder.path().string(), 1, 4096}, 1, 0);
  EXPECT_FALSE(std::filesystem::exists(dead));
  EXPECT_TRUE(std::filesystem::exists(unlocked / "0.bin")) << "its process may be about to lock it";
  EXPECT_EQ(live.what_changed(), "");
}

TEST(FileSetTest, UnusableFolderIsReported) {
  EXPECT_THROW(FileSet({"/nonexistent", 1, 4096}, 1, 0), BadInput);
  const test::TempDir folder;
  EXPECT_THROW(FileSet({folder.path().string(), 1000, std::uint64_t{1} << 40}, 1, 0), BadInput);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(FileSetTest, UnusableDeviceIsReported) {
  const auto message = [](const std::vector<std::string>& devices) -> std::string {
    try {
      FileSet::require_room({.bytes = 4096, .devices = devices});
    } catch (const BadInput& input) {
      return input.what();
    }
    return "accepted";
  };
  EXPECT_NE(message({"/nonexistent"}).find("a block device (No such file"), std::string::npos);
  EXPECT_NE(message({"/dev/null"}).find("a block device"), std::string::npos);
}

TEST(OptionsTest, PointsThatCannotBeMeasuredAsNamedAreRejected) {
  const auto why = [](Options options) { return why_impossible(options, {}, {}); };
  EXPECT_EQ(why({}), "");
  Options passes{.engine = "pread", .residency = "cold", .lifetime = "pass"};
  EXPECT_NE(why(passes).find("lifetime pass needs --residency warm"), std::string::npos) << why(passes);
  passes.direct = "yes";
  EXPECT_EQ(why(passes), "");
  Options devices{.target = "/dev/loop0"};
  EXPECT_NE(why(devices).find("--overwrite yes"), std::string::npos);
}

TEST(OptionsTest, PageCacheInGpuMemoryCountsTowardsTheMemoryOfAPoint) {
  const EngineEntry& engine = Engines::instance().get("--engine", "gpu_rings");
  const auto why = [&](unsigned threads, std::uint64_t pages) {
    const Options options{.engine = "gpu_rings", .block = 4096, .threads = threads};
    return engine.why_unsupported(point_of(options, {{"cache-pages", pages}}));
  };
  EXPECT_EQ(why(1, 4 << 20), "");
  EXPECT_NE(why(1, 8 << 20).find("--cache-pages 8388608 × --block 4096 × --threads 1 is 34359738368 bytes"),
            std::string::npos);
  EXPECT_NE(why(2, 4 << 20), "");
}

TEST(PatternTest, EveryBlockBelongsToOneThreadOnce) {
  for (const char* access : {"sequential", "random", "strided"}) {
    std::vector<unsigned> seen(1000);
    for (unsigned t = 0; t < 3; ++t) {
      const Pattern pattern(access, seen.size(), t, 3, 9);
      for (std::uint64_t n = 0; n < pattern.size(); ++n) ++seen[pattern.at(n)];
      EXPECT_EQ(pattern.at(pattern.size()), pattern.at(0)) << "the order begins again";
    }
    EXPECT_EQ(std::ranges::count(seen, 1u), 1000) << access;
  }
}

TEST(ContentTest, AnyOffsetAndLengthIsFilledAndChecked) {
  alignas(8) std::byte whole[80], part[80];
  fill_content(whole, 80, 7, 1000);
  for (std::size_t offset = 0; offset < 20; ++offset) {
    for (std::size_t bytes = 1; bytes <= 40; ++bytes) {
      fill_content(part, bytes, 7, 1000 + offset);
      ASSERT_EQ(std::memcmp(part, whole + offset, bytes), 0) << offset << " " << bytes;
      std::uint64_t first = ~std::uint64_t{0};
      ASSERT_EQ(count_wrong(part, bytes, 7, 1000 + offset, first), 0u);
      part[bytes - 1] ^= std::byte{0x80};
      ASSERT_EQ(count_wrong(part, bytes, 7, 1000 + offset, first), 1u);
      ASSERT_EQ(first, (bytes - 1) / 8 * 8);
    }
  }
}

}  // namespace
}  // namespace feedrate::storage
