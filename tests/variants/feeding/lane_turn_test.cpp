#include "variants/feeding/queues/lane_turn.hpp"

#include <gtest/gtest.h>

namespace feedrate {
namespace {

std::uint64_t never() {
  ADD_FAILURE() << "the clock was read";
  return 0;
}
auto at(std::uint64_t ns) {
  return [ns] { return ns; };
}

TEST(LaneTurn, EndsAfterItsMessagesEvenInSmallSteps) {
  LaneTurn turn(50);
  for (unsigned turns = 0; turns < 3; ++turns) {
    for (unsigned published = 4; published < 50; published += 4) EXPECT_FALSE(turn.ends(4, at(7)));
    EXPECT_TRUE(turn.ends(4, at(7)));
  }
}

TEST(LaneTurn, FullBatchDoesNotReadTheClock) {
  LaneTurn turn(50);
  EXPECT_TRUE(turn.ends(50, never));
  EXPECT_TRUE(turn.ends(60, never));
  LaneTurn of_large_messages(0);
  EXPECT_TRUE(of_large_messages.ends(1, never));
}

TEST(LaneTurn, EndsAfterTheLongestTurnTime) {
  LaneTurn turn(50);
  std::uint64_t began = 5'000'000;
  EXPECT_TRUE(turn.ends(1, at(began)));
  for (unsigned turns = 0; turns < 3; ++turns) {
    EXPECT_FALSE(turn.ends(1, at(began + 1)));
    EXPECT_FALSE(turn.ends(1, at(began + LaneTurn::kLongestNs - 1)));
    began += LaneTurn::kLongestNs;
    EXPECT_TRUE(turn.ends(1, at(began)));
  }
}

// With lone messages, each message goes to the lane whose teams have had the most time for earlier messages.
TEST(LaneTurn, LoneMessageEndsTheTurnAtOnce) {
  LaneTurn turn(50);
  for (std::uint64_t ns = LaneTurn::kLongestNs; ns < 1'000'000; ns += LaneTurn::kLongestNs) {
    EXPECT_TRUE(turn.ends(1, at(ns)));
  }
}

TEST(LaneTurn, RestartsIfTheLaneWasFull) {
  LaneTurn turn(50);
  EXPECT_FALSE(turn.ends(49, at(0)));
  turn.pass_over();
  EXPECT_FALSE(turn.ends(49, at(1)));
  EXPECT_TRUE(turn.ends(1, at(2)));
}

}  // namespace
}  // namespace feedrate
