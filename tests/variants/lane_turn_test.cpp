#include "variants/queues/lane_turn.hpp"

#include <gtest/gtest.h>

namespace feedrate {
namespace {

std::uint64_t never() {
  ADD_FAILURE() << "asked what time it is";
  return 0;
}

TEST(LaneTurn, EndsWithItsMessagesHoweverFewAtATime) {
  LaneTurn turn(50);
  for (unsigned turns = 0; turns < 3; ++turns) {
    for (unsigned published = 4; published < 50; published += 4) EXPECT_FALSE(turn.ends(4, [] { return 7u; }));
    EXPECT_TRUE(turn.ends(4, never));
  }
  EXPECT_TRUE(turn.ends(50, never));
}

TEST(LaneTurn, EndsAfterAWhileSinceItsFirstMessage) {
  LaneTurn turn(50);
  for (std::uint64_t began = 1'000'000; began < 3'000'000; began += 1'000'000) {
    EXPECT_FALSE(turn.ends(1, [&] { return began; }));
    EXPECT_FALSE(turn.ends(1, [&] { return began + LaneTurn::kLongestNs - 1; }));
    EXPECT_TRUE(turn.ends(1, [&] { return began + LaneTurn::kLongestNs; }));
  }
}

TEST(LaneTurn, BeginsAnewWhenTheLaneWasFull) {
  LaneTurn turn(50);
  EXPECT_FALSE(turn.ends(49, [] { return 0u; }));
  turn.cut_short();
  EXPECT_FALSE(turn.ends(49, [] { return LaneTurn::kLongestNs; }));
  EXPECT_TRUE(turn.ends(1, never));
}

TEST(LaneTurn, OfLargeMessagesIsOver) {
  LaneTurn turn(0);
  EXPECT_TRUE(turn.ends(1, never));
  EXPECT_TRUE(turn.ends(1, never));
}

}  // namespace
}  // namespace feedrate
