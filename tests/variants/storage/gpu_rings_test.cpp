#include <atomic>
#include <thread>

#include "kernels/storage/rings_kernel.hpp"
#include "tests/support/storage_rings.hpp"

namespace feedrate {
namespace {

class GpuRingsTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::string reason = storage::Engines::instance().get("", "gpu_rings").unavailable();
    if (!reason.empty()) GTEST_SKIP() << reason;
  }
  std::unique_ptr<Device> device = open_cpu_device();
  test::RingChecks checks{*device};
};

TEST_F(GpuRingsTest, EveryBlockIsCheckedOnce) { checks.every_block_is_checked_once(); }
TEST_F(GpuRingsTest, CacheThatHoldsEverythingLoadsEachBlockOnce) {
  checks.cache_that_holds_everything_loads_each_block_once();
}
TEST_F(GpuRingsTest, SmallCacheReplacesBlocks) { checks.small_cache_replaces_blocks(); }
TEST_F(GpuRingsTest, LateAndReorderedCompletionsAreWaitedFor) {
  checks.late_and_reordered_completions_are_waited_for();
}
TEST_F(GpuRingsTest, FaultsAreReportedWithFileAndOffset) { checks.faults_are_reported_with_file_and_offset(); }

/// Threads look pages up in a cache that is much too small, and write the page's number into pages that they load.
TEST(PageCacheTest, PageInUseIsNeverReplaced) {
  constexpr std::uint32_t kSets = 2, kWays = 2, kPage = 16;
  alignas(16) std::byte pages[kSets * kWays * kPage];
  std::uint64_t entries[kSets * kWays] = {};
  const storage::PageCache cache{entries, pages, kSets, kWays, kPage};
  std::atomic<std::uint64_t> wrong{0}, hits{0};
  {
    std::vector<std::jthread> threads;
    for (unsigned t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        for (std::uint64_t n = 0; n < 20'000; ++n) {
          const std::uint64_t page = mix64(n * 4 + t) % 7;
          std::uint32_t entry = 0;
          const storage::Lookup found = cache.acquire(page, entry);
          if (found == storage::Lookup::full) continue;
          auto* const word = reinterpret_cast<std::uint64_t*>(cache.page(entry));
          if (found == storage::Lookup::load) {
            *word = page;
            cache.loaded(entry, page != 6);
          }
          while (cache.state_of(entry) == storage::CacheEntry::State::loading) std::this_thread::yield();
          if (*word != page) ++wrong;
          if ((cache.state_of(entry) == storage::CacheEntry::State::failed) != (page == 6)) ++wrong;
          if (found == storage::Lookup::hit) ++hits;
          cache.release(entry);
        }
      });
    }
  }
  EXPECT_EQ(wrong, 0u);
  EXPECT_GT(hits, 0u);
  for (const std::uint64_t word : entries) EXPECT_EQ(storage::CacheEntry{word}.users(), 0u) << "references are dropped";
}

TEST(TallyTest, BucketsContainTheirValues) {
  for (std::uint64_t ns = 0; ns < (std::uint64_t{1} << 38); ns += 1 + ns / 7) {
    const auto middle = static_cast<double>(storage::rings::tally_ns(storage::rings::tally_bucket(ns)));
    EXPECT_NEAR(middle, static_cast<double>(ns), static_cast<double>(ns) / 128);
  }
}

}  // namespace
}  // namespace feedrate
