#include "libraries/storage/plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

namespace feedrate::storage {
namespace {

constexpr std::uint64_t kBegins[] = {0, 1000, 1000, 5096};  // files of 1000, 0 and 4096 bytes
std::byte* place(std::uint64_t at) { return reinterpret_cast<std::byte*>(at); }

/// Reads by a plan: which byte of the source each place gets. Fails if a run leaves its file or is too long.
std::vector<std::uint64_t> moved(const Plan& plan, std::span<const std::uint64_t> begins, const PlanRules& rules,
                                 std::size_t bytes) {
  std::vector<std::uint64_t> found(bytes, ~std::uint64_t{0});
  std::size_t next = 0;
  for (const Run& run : plan.runs) {
    EXPECT_EQ(run.first, next);
    next += run.pieces;
    EXPECT_LE(run.bytes, rules.block);
    EXPECT_LE(run.offset + run.bytes, begins[run.file + 1] - begins[run.file]);
    EXPECT_EQ(run.offset % rules.alignment, 0u);
    for (std::size_t p = run.first; p < next; ++p) {
      const Piece& piece = plan.pieces[p];
      EXPECT_LE(piece.at + piece.bytes, run.bytes);
      const auto to = reinterpret_cast<std::uintptr_t>(piece.device) - 1;
      std::iota(found.begin() + static_cast<std::ptrdiff_t>(to),
                found.begin() + static_cast<std::ptrdiff_t>(to + piece.bytes),
                begins[run.file] + run.offset + piece.at);
    }
  }
  EXPECT_EQ(next, plan.pieces.size());
  EXPECT_EQ(next, plan.of.size());
  return found;
}

TEST(StoragePlan, NeighboursAreReadTogether) {
  const Plan plan =
      plan_of({{300, 50, place(1)}, {100, 100, place(101)}, {210, 40, place(301)}}, kBegins, {4096, 64, 1});
  ASSERT_EQ(plan.runs.size(), 1u);
  EXPECT_EQ(plan.runs[0].offset, 100u);
  EXPECT_EQ(plan.runs[0].bytes, 250u);
  EXPECT_EQ(plan.pieces.size(), 3u);
  EXPECT_EQ(plan_of({{300, 50, place(1)}, {100, 100, place(101)}}, kBegins, {4096, 64, 1}).runs.size(), 2u)
      << "100 bytes lie between them";
}

TEST(StoragePlan, LongExtentsAreCutAtBlocksAndFiles) {
  const Plan plan = plan_of({{900, 4000, place(1)}}, kBegins, {1024, 0, 1});
  std::vector<std::pair<unsigned, std::uint64_t>> found;
  for (const auto& run : plan.runs) found.emplace_back(run.file, run.offset);
  EXPECT_EQ(found,
            (std::vector<std::pair<unsigned, std::uint64_t>>{{0, 900}, {2, 0}, {2, 1024}, {2, 2048}, {2, 3072}}));
}

TEST(StoragePlan, AlignedRunsEndWithTheirFile) {
  const Plan plan = plan_of({{990, 20, place(1)}}, kBegins, {1024, 0, 512});
  ASSERT_EQ(plan.runs.size(), 2u);
  EXPECT_EQ(plan.runs[0].offset, 512u);
  EXPECT_EQ(plan.runs[0].bytes, 488u) << "the first file has 1000 bytes";
  EXPECT_EQ(plan.runs[1].bytes, 512u);
}

TEST(StoragePlan, NothingNeedsNoRun) {
  EXPECT_TRUE(plan_of({}, kBegins, {1024, 0, 1}).runs.empty());
  EXPECT_TRUE(plan_of({{1000, 0, nullptr}}, kBegins, {1024, 0, 1}).runs.empty());
}

TEST(StoragePlan, EveryByteArrivesWhateverTheExtents) {
  std::mt19937_64 random(7);
  const auto below = [&](std::uint64_t limit) { return random() % limit; };
  for (int turn = 0; turn < 300; ++turn) {
    std::vector<std::uint64_t> begins{0};
    for (std::uint64_t i = 0, files = 1 + below(4); i < files; ++i) begins.push_back(begins.back() + below(5000));
    if (begins.back() == 0) continue;
    const std::size_t alignment = below(2) == 0 ? 1 : 512;
    const PlanRules rules{std::size_t{512} << below(4), below(3) * 700, alignment};
    std::vector<Extent> extents;
    std::vector<std::uint64_t> expected;
    for (std::uint64_t i = 0, count = below(40); i < count; ++i) {
      const std::uint64_t start = below(begins.back()),
                          bytes = below(std::min<std::uint64_t>(begins.back() - start, 3000) + 1);
      extents.push_back({start, bytes, place(1 + expected.size())});
      for (std::uint64_t n = 0; n < bytes; ++n) expected.push_back(start + n);
    }
    const Plan plan = plan_of(extents, begins, rules);
    EXPECT_EQ(moved(plan, begins, rules, expected.size()), expected) << turn;
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace feedrate::storage
