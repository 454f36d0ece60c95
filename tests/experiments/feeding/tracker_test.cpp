#include "experiments/feeding/tracker.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace feedrate {
namespace {

using Verdict = Tracker::Verdict;

TEST(Tracker, TrackerMatchesASetForNumbersInRandomOrder) {
  std::mt19937 random(3);
  Tracker tracker(128);
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 100'000; ++i) {
    const std::uint64_t n = tracker.lowest_missing() + random() % 140 - (tracker.lowest_missing() > 10 ? 10 : 0);
    const bool known = seen.contains(n);
    const bool beyond = n >= tracker.lowest_missing() + 128;
    const Verdict verdict = tracker.accept(n);
    ASSERT_EQ(verdict, known ? Verdict::duplicate : beyond ? Verdict::unknown : Verdict::fresh) << n;
    if (verdict == Verdict::fresh) seen.insert(n);
  }
}

TEST(Tracker, RunsInOrderAreAccepted) {
  Tracker tracker(64);
  for (const std::uint64_t count : {1, 63, 64, 1000}) {
    const std::uint64_t first = tracker.lowest_missing();
    EXPECT_TRUE(tracker.accept_run(first, count));
    EXPECT_EQ(tracker.lowest_missing(), first + count);
  }
  EXPECT_EQ(tracker.reordered(), 0u);
}

TEST(Tracker, RunIsAcceptedIfAndOnlyIfAllItsNumbersAre) {
  std::mt19937 random(5);
  for (const std::uint64_t span : {64, 128, 1024}) {
    Tracker by_runs(span), one_by_one(span);
    std::uint64_t taken = 0;
    for (int i = 0; i < 100'000; ++i) {
      const std::uint64_t lowest = one_by_one.lowest_missing();
      // Often the lowest missing number, sometimes an old number or one that is too far ahead.
      const std::uint64_t first =
          random() % 3 == 0 ? lowest : lowest + random() % (span + 20) - std::min(lowest, random() % 4ul);
      const std::uint64_t count = 1 + random() % (random() % 2 == 0 ? 5 : span / 2);
      Tracker copy = one_by_one;
      bool fresh = true;
      for (std::uint64_t n = 0; n < count; ++n) fresh &= copy.accept(first + n) == Verdict::fresh;
      if (fresh) one_by_one = copy;
      taken += fresh;
      ASSERT_EQ(by_runs.accept_run(first, count), fresh) << count << " from " << first << ", missing " << lowest;
      ASSERT_EQ(by_runs.lowest_missing(), one_by_one.lowest_missing());
      ASSERT_EQ(by_runs.reordered(), one_by_one.reordered());
    }
    EXPECT_GT(taken, 10'000u);
    EXPECT_GT(one_by_one.reordered(), 1'000u);
  }
}

TEST(Tracker, OvertakenMessagesAreCounted) {
  Tracker tracker(64);
  for (const std::uint64_t n : {1, 0, 2, 5, 4, 3}) tracker.accept(n);
  EXPECT_EQ(tracker.reordered(), 3u);
}

}  // namespace
}  // namespace feedrate
