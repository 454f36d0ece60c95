// Reading and writing records through the library, on the CPU device: with each engine, cached and direct.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <numeric>
#include <random>
#include <thread>

#include "feedrate/storage.hpp"
#include "libraries/storage/descriptor.hpp"
#include "libraries/storage/uring.hpp"
#include "tests/support/storage_files.hpp"
#include "tests/support/temp_dir.hpp"

namespace feedrate::storage {
namespace {

constexpr std::uint64_t kFiles[] = {300'000, 4096, 0, 77'777};  // bytes
constexpr std::uint64_t kAll = 300'000 + 4096 + 77'777;

struct Setting {
  const char* engine;
  bool direct;
};

class StorageSource : public testing::TestWithParam<Setting> {
 protected:
  void SetUp() override {
    if (std::string(GetParam().engine) == "io_uring" && !Uring::unavailable().empty())
      GTEST_SKIP() << Uring::unavailable();
    std::mt19937_64 random(3);
    for (const std::uint64_t bytes : kFiles) {
      std::vector<unsigned char> content(bytes);
      for (auto& one : content) one = static_cast<unsigned char>(random());
      paths_.push_back(folder_ / ("part" + std::to_string(paths_.size())));
      std::ofstream(paths_.back(), std::ios::binary)
          .write(reinterpret_cast<const char*>(content.data()), static_cast<std::streamsize>(bytes));
      all_.insert(all_.end(), content.begin(), content.end());
    }
    if (GetParam().direct) {
      try {
        const Descriptor probe(paths_.front(), O_RDONLY | O_DIRECT);
      } catch (const Failure& failure) {
        GTEST_SKIP() << failure.what();
      }
    }
  }
  SourceOptions options() const {
    return {.device = "cpu", .engine = GetParam().engine, .direct = GetParam().direct, .block = 16384, .depth = 6};
  }
  std::span<const unsigned char> expected(std::uint64_t start, std::uint64_t bytes) const {
    return std::span(all_).subspan(start, bytes);
  }
  static bool equal(std::span<const unsigned char> one, std::span<const unsigned char> other) {
    return std::ranges::equal(one, other);
  }
  /// The message of the exception that `act` throws.
  template <class Error>
  static std::string message(const std::function<void()>& act) {
    try {
      act();
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  }

  test::TempDir folder_;
  std::vector<std::string> paths_;
  std::vector<unsigned char> all_;
};

TEST_P(StorageSource, ConsecutiveRecordsArriveAcrossFiles) {
  Source source(paths_, options());
  EXPECT_EQ(source.bytes(), kAll);
  EXPECT_EQ(source.begin_of(3), 304'096u);
  const unsigned kind = source.add_kind({.name = "rows", .start = 12, .record_bytes = 1000});
  ASSERT_EQ(source.records(kind), 381u);
  EXPECT_EQ(source.find("rows"), kind);
  std::vector<unsigned char> got(381'000);
  source.read(kind, 0, 381, got.data());
  EXPECT_TRUE(equal(got, expected(12, 381'000)));
  source.read(kind, 299, 7, got.data());
  EXPECT_TRUE(equal(std::span(got).first(7000), expected(299'012, 7000)));
  source.read(kind, 381, 0, got.data());
}

TEST_P(StorageSource, AnyBytesArrive) {
  Source source(paths_, options());
  std::mt19937_64 random(5);
  for (int turn = 0; turn < 60; ++turn) {
    const std::uint64_t start = random() % kAll, bytes = random() % std::min<std::uint64_t>(kAll - start, 50'000) + 1;
    std::vector<unsigned char> got(bytes + 2, 0xEE);
    source.read_bytes(start, bytes, got.data() + 1);
    ASSERT_TRUE(equal(std::span(got).subspan(1, bytes), expected(start, bytes))) << start << " " << bytes;
    ASSERT_TRUE(got.front() == 0xEE && got.back() == 0xEE) << "bytes beside the place were written";
  }
}

TEST_P(StorageSource, BatchMixesKindsAndRepeats) {
  Source source(paths_, options());
  const unsigned fixed = source.add_kind({.name = "fixed", .start = 100'000, .bytes = 150'000, .record_bytes = 500});
  const unsigned variable =
      source.add_kind({.name = "variable", .start = 290'000, .offsets = {0, 0, 17, 5000, 20'000, 20'001, 80'000}});
  EXPECT_EQ(source.bytes_of(variable, 2), 4983u);
  std::mt19937_64 random(9);
  std::vector<Record> batch;
  std::vector<unsigned char> got, wanted;
  std::vector<std::size_t> places;
  for (int i = 0; i < 400; ++i) {
    const bool of_fixed = random() % 4 != 0;
    const unsigned kind = of_fixed ? fixed : variable;
    const std::uint64_t index = random() % source.records(kind), bytes = source.bytes_of(kind, index);
    const std::uint64_t start = of_fixed ? 100'000 + 500 * index : 290'000 + source.bytes_of(variable, 0, index);
    batch.push_back({kind, index, nullptr});
    places.push_back(wanted.size());
    const auto content = expected(start, bytes);
    wanted.insert(wanted.end(), content.begin(), content.end());
  }
  got.resize(wanted.size());
  for (std::size_t i = 0; i < batch.size(); ++i) batch[i].place = got.data() + places[i];
  source.read_batch(batch);
  EXPECT_TRUE(equal(got, wanted));
  const Statistics totals = source.statistics();
  EXPECT_EQ(totals.records, 400u);
  EXPECT_EQ(totals.record_bytes, wanted.size());
  EXPECT_LT(totals.requests, 60u) << "neighbouring records were not read together";
  EXPECT_EQ(totals.errors, 0u);
}

TEST_P(StorageSource, ManyThreadsReadAtOnce) {
  Source source(paths_, options());
  const unsigned kind = source.add_kind({.record_bytes = 997});
  std::atomic<int> wrong{0};
  {
    std::vector<std::jthread> readers;
    for (int t = 0; t < 4; ++t) {
      readers.emplace_back([&, t] {
        std::vector<Pending> pending;
        std::vector<std::vector<unsigned char>> got(30);
        for (std::size_t i = 0; i < got.size(); ++i) {
          got[i].resize(3 * 997);
          pending.push_back(
              source.read_async(kind, (i * 11 + static_cast<std::size_t>(t) * 50) % 380, 3, got[i].data()));
        }
        for (std::size_t i = 0; i < got.size(); ++i) {
          pending[i].wait();
          const std::uint64_t first = (i * 11 + static_cast<std::size_t>(t) * 50) % 380;
          if (!equal(got[i], expected(first * 997, got[i].size()))) ++wrong;
        }
      });
    }
  }
  EXPECT_EQ(wrong, 0);
}

TEST_P(StorageSource, WrittenRecordsAreReadBack) {
  SourceOptions writable = options();
  writable.writable = true;
  Source source(paths_, writable);
  const unsigned kind = source.add_kind({.name = "rows", .start = 3, .record_bytes = 10'001});
  std::vector<unsigned char> rows(30 * 10'001);
  std::iota(rows.begin(), rows.end(), 1);
  source.write(kind, 5, 30, rows.data());
  source.sync();
  std::ranges::copy(rows, all_.begin() + 3 + 5 * 10'001);
  std::vector<unsigned char> got(kAll);
  source.read_bytes(0, kAll, got.data());
  EXPECT_TRUE(equal(got, all_)) << "other bytes changed, or these did not";
}

TEST_P(StorageSource, ShortenedFileFailsItsRecordsOnly) {
  Source source(paths_, options());
  const unsigned kind = source.add_kind({.name = "images", .record_bytes = 1000});
  std::filesystem::resize_file(paths_[0], 200'500);
  std::vector<unsigned char> got(300'000);
  const std::string said = message<StorageError>([&] { source.read(kind, 150, 100, got.data()); });
  EXPECT_NE(said.find("record 200 of kind 'images'"), std::string::npos) << said;
  EXPECT_NE(said.find("at offset 200500 of " + paths_[0] + ": the file ends there"), std::string::npos) << said;
  source.read(kind, 150, 50, got.data());
  EXPECT_TRUE(equal(std::span(got).first(50'000), expected(150'000, 50'000)));
  EXPECT_GE(source.statistics().errors, 1u);
}

TEST_P(StorageSource, ClosingEndsEveryRequest) {
  std::vector<Pending> pending;
  std::vector<unsigned char> got(200 * 100'000);
  {
    Source source(paths_, options());
    for (std::size_t i = 0; i < 200; ++i)
      pending.push_back(source.read_bytes_async(i, 100'000, got.data() + i * 100'000));
    pending.front().wait();
  }
  std::size_t read = 0;
  for (std::size_t i = 0; i < pending.size(); ++i) {
    ASSERT_TRUE(pending[i].ready());
    try {
      pending[i].wait();
      ++read;
      EXPECT_TRUE(equal(std::span(got).subspan(i * 100'000, 100'000), expected(i, 100'000)));
    } catch (const Failure& failure) {
      EXPECT_STREQ(failure.what(), "the source was closed");
    }
  }
  EXPECT_GE(read, 1u);
}

TEST_P(StorageSource, WriteThatHasBegunIsCompleted) {
  SourceOptions writable = options();
  writable.writable = true;
  writable.depth = 1;
  const std::vector<unsigned char> ones(300'000, 1);
  {
    Source source(paths_, writable);
    const Pending write = source.write_bytes_async(0, ones.size(), ones.data());
    while (source.statistics().requests == 0) std::this_thread::yield();
  }
  std::vector<unsigned char> got(ones.size());
  Source(paths_, options()).read_bytes(0, got.size(), got.data());
  EXPECT_TRUE(equal(got, ones));
}

TEST_P(StorageSource, FilesStayThoseThatWereOpened) {
  Source source(paths_, options());
  std::filesystem::rename(paths_[0], paths_[0] + ".old");
  std::ofstream(paths_[0]) << std::string(300'000, 'n');
  std::filesystem::remove(paths_[3]);
  std::vector<unsigned char> got(kAll);
  source.read_bytes(0, kAll, got.data());
  EXPECT_TRUE(equal(got, all_)) << "bytes of another file";
}

TEST_P(StorageSource, StatisticsCountWhatWasMoved) {
  Source source(paths_, options());
  const unsigned kind = source.add_kind({.record_bytes = 1000});
  std::vector<unsigned char> got(5000);
  source.read(kind, 0, 5, got.data());
  source.read_bytes(0, 10, got.data());
  EXPECT_THROW(source.read(kind, 0, 5, nullptr), BadInput);
  EXPECT_EQ(source.statistics().records, 5u);
  EXPECT_EQ(source.statistics().record_bytes, 5010u);
}

TEST_P(StorageSource, WaitingForeverIsPossible) {
  Source source(paths_, options());
  std::vector<unsigned char> got(kAll);
  EXPECT_TRUE(source.read_bytes_async(0, kAll, got.data()).wait_for(std::chrono::nanoseconds::max()));
}

TEST_P(StorageSource, InvalidRequestsNameWhatIsAllowed) {
  Source source(paths_, options());
  const unsigned kind = source.add_kind({.name = "rows", .record_bytes = 1000});
  unsigned char byte = 0;
  const auto invalid = [&](const std::function<void()>& act) { return message<BadInput>(act); };
  EXPECT_EQ(invalid([&] { source.read(kind, 380, 2, &byte); }),
            "records of kind 'rows': invalid value '2 from 380'; allowed: at most 381 records from 0 on");
  EXPECT_EQ(invalid([&] { source.read(7, 0, 1, &byte); }), "kind: invalid value '7'; allowed: 0 to 0");
  EXPECT_EQ(invalid([&] { source.read(kind, 0, 1, nullptr); }),
            "place: invalid value 'null'; allowed: an address in the device's memory");
  EXPECT_EQ(invalid([&] { source.read_bytes(kAll, 1, &byte); }),
            "bytes: invalid value '1 from 381873'; allowed: 0 to 381873, the bytes of the source");
  EXPECT_EQ(invalid([&] { source.write(kind, 0, 1, &byte); }),
            "writable: invalid value 'false'; allowed: true, to write to the source");
  EXPECT_EQ(invalid([&] { source.read_async(kind, 0, 1, &byte, Order::in(nullptr)); }),
            "stream: invalid value 'a stream'; allowed: none, because the device has no streams");
  EXPECT_EQ(invalid([&] { source.add_kind({.name = "rows", .record_bytes = 1}); }),
            "kind: invalid value 'rows'; allowed: a name that no other kind of the source has");
  EXPECT_EQ(invalid([&] { source.add_kind({.name = "x", .start = kAll + 1, .record_bytes = 1}); }),
            "start of kind 'x': invalid value '381874'; allowed: 0 to 381873, the bytes of the source");
  EXPECT_EQ(invalid([&] {
              source.add_kind({.name = "x", .offsets = {0, 9, 8}});
            }),
            "offset 2 of kind 'x': invalid value '8'; allowed: at least the one before it");
  EXPECT_EQ(invalid([&] { source.add_kind({.name = "x"}); }),
            "record_bytes of kind 'x': invalid value '0'; allowed: a size, or offsets of variable records");
}

INSTANTIATE_TEST_SUITE_P(Each, StorageSource,
                         testing::Values(Setting{"threads", false}, Setting{"threads", true},
                                         Setting{"io_uring", false}, Setting{"io_uring", true}),
                         [](const auto& test) {
                           return std::string(test.param.engine) + (test.param.direct ? "_direct" : "");
                         });

TEST(StorageSourceOptions, AreChecked) {
  const test::TempDir folder;
  const std::string path = test::content_file(folder / "a", 100, 1).path;
  const auto said = [&](const std::vector<std::string>& paths, const SourceOptions& options) {
    try {
      const Source source(paths, options);
    } catch (const std::runtime_error& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_EQ(said({path}, {.device = "cpu"}), "accepted");
  EXPECT_EQ(said({}, {.device = "cpu"}), "paths: invalid value ''; allowed: at least one file or block device");
  EXPECT_NE(said({path, folder / "none"}, {.device = "cpu"}).find("/none: No such file"), std::string::npos);
  EXPECT_NE(said({folder.path()}, {.device = "cpu"}).find("allowed: a file or a block device"), std::string::npos);
  EXPECT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_NE(said({folder / "pipe"}, {.device = "cpu"}).find("allowed: a file or a block device"), std::string::npos);
  EXPECT_NE(said({path + std::string("\0b", 2)}, {.device = "cpu"}).find("a path without a byte 0"), std::string::npos);
  EXPECT_NE(said({path}, {.device = "cpu", .gap = ~std::size_t{0}}).find("gap: invalid value"), std::string::npos);
  EXPECT_NE(said({path}, {.device = "cpu", .block = std::size_t{1} << 28, .depth = 100}).find("at most 64 with blocks"),
            std::string::npos);
  EXPECT_NE(said({path}, {.device = "tpu"}).find("device: invalid value 'tpu'"), std::string::npos);
  EXPECT_NE(said({path}, {.device = "cpu", .block = 1000}).find("block: invalid value '1000'"), std::string::npos);
  EXPECT_NE(said({path}, {.device = "cpu", .depth = 0}).find("depth: invalid value '0'"), std::string::npos);
  EXPECT_NE(said({path}, {.device = "cpu", .engine = "dma"}).find("allowed: auto, threads, io_uring"),
            std::string::npos);
}

TEST(StorageSourceOptions, EngineIsChosenWithAReason) {
  const test::TempDir folder;
  const std::string path = test::content_file(folder / "a", 100, 1).path;
  EXPECT_EQ(Source({path}, {.device = "cpu"}).engine(), "threads: cached blocks are copied on several cores");
}

}  // namespace
}  // namespace feedrate::storage
