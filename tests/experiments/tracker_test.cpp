#include "experiments/tracker.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace feedrate {
namespace {

using Verdict = Tracker::Verdict;

TEST(Tracker, InOrder) {
  Tracker tracker(64);
  for (std::uint64_t n = 0; n < 1000; ++n) EXPECT_EQ(tracker.accept(n), Verdict::fresh);
  EXPECT_EQ(tracker.lowest_missing(), 1000u);
  EXPECT_EQ(tracker.reordered(), 0u);
  EXPECT_EQ(tracker.accept(999), Verdict::duplicate);
  EXPECT_EQ(tracker.accept(1000 + 64), Verdict::unknown);
}

TEST(Tracker, AgreesWithASetUnderRandomOrder) {
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

TEST(Tracker, CountsWhatWasOvertaken) {
  Tracker tracker(64);
  for (const std::uint64_t n : {1, 0, 2, 5, 4, 3}) tracker.accept(n);
  EXPECT_EQ(tracker.reordered(), 3u);
}

}  // namespace
}  // namespace feedrate
