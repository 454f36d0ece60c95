#include "experiments/feeding/steadiness.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <random>

namespace feedrate::test {
namespace {

constexpr std::uint64_t kMs = 1'000'000;

/// Milliseconds until a rate (messages per millisecond, as a function of time) counts as steady; 0 = not within `most`.
unsigned steady_after(const std::function<double(unsigned ms)>& rate, unsigned most = 1000) {
  Steadiness steadiness;
  double received = 0;
  for (unsigned ms = 1; ms <= most; ++ms) {
    received += rate(ms);
    if (steadiness.add(ms * kMs, static_cast<std::uint64_t>(received))) return ms;
  }
  return 0;
}

TEST(Steadiness, ConstantRateIsSteadyAfterEightSlices) {
  EXPECT_EQ(steady_after([](unsigned) { return 1000; }), 41) << "one initial reading and eight slices of 5 ms";
}

TEST(Steadiness, RisingRateIsNotSteady) {
  EXPECT_EQ(steady_after([](unsigned ms) { return 1000.0 + 10 * ms; }, 400), 0);
  const unsigned after = steady_after([](unsigned ms) { return ms < 100 ? 10.0 * ms : 1000; });
  EXPECT_GT(after, 100u) << "the judged slices lie after the rise";
  EXPECT_LE(after, 250u);
}

TEST(Steadiness, NoisyRateTakesLonger) {
  std::mt19937_64 random(1);
  const auto noisy = [&](unsigned) { return std::normal_distribution<double>(1000, 60)(random); };
  const unsigned after = steady_after(noisy, 5000);
  EXPECT_GT(after, 41u);
  EXPECT_LT(after, 3000u);
}

TEST(Steadiness, ZeroRateIsNotSteady) {
  EXPECT_EQ(steady_after([](unsigned) { return 0; }, 300), 0);
}

/// The share of 200 rates that are called changing after 300 ms.
double changing_share(const std::function<double(unsigned ms, std::mt19937_64&)>& rate) {
  unsigned changing = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937_64 random(seed);
    Steadiness steadiness;
    double received = 0;
    for (unsigned ms = 1; ms <= 300; ++ms) {
      received += rate(ms, random);
      steadiness.add(ms * kMs, static_cast<std::uint64_t>(received));
    }
    changing += steadiness.changing() ? 1 : 0;
  }
  return changing / 200.0;
}

TEST(Steadiness, NoiseAloneIsRarelyCalledChanging) {
  for (const double noise : {30.0, 300.0, 1000.0}) {
    const double share = changing_share([&](unsigned, std::mt19937_64& random) {
      return std::max(0.0, std::normal_distribution<double>(1000, noise)(random));
    });
    EXPECT_LE(share, 0.08) << noise;
  }
}

TEST(Steadiness, NeighbouringSlicesThatAreAlikeAreSeldomTakenForATrend) {
  double drift = 0;  // lasts for several slices
  const double share = changing_share([&](unsigned ms, std::mt19937_64& random) {
    if (ms % 5 == 0) drift = 0.7 * drift + std::normal_distribution<double>(0, 70)(random);
    return 1000 + drift;
  });
  EXPECT_LE(share, 0.25) << "judged slice by slice, it would be 0.5";
}

TEST(Steadiness, TrendIsCalledChangingDespiteNoise) {
  const double share = changing_share([](unsigned ms, std::mt19937_64& random) {
    return 500.0 + 2 * ms + std::normal_distribution<double>(0, 100)(random);
  });
  EXPECT_GE(share, 0.95);
  EXPECT_EQ(changing_share([](unsigned, std::mt19937_64&) { return 0.0; }), 1) << "no results at all";
  EXPECT_TRUE(Steadiness().changing()) << "too short to tell";
}

/// Poisson arrivals at 2 per millisecond, whose own noise is 30 % per slice.
TEST(Steadiness, OpenLoadIsSteadyIfItKeepsUpWithArrivals) {
  std::mt19937_64 random(1);
  std::poisson_distribution<std::uint64_t> arrivals(2);
  Steadiness kept_up, rate_alone;
  std::uint64_t due = 0;
  unsigned after = 0;
  bool alone = false;
  for (unsigned ms = 1; ms <= 200; ++ms) {
    due += arrivals(random);
    const std::uint64_t received = due;  // the last results arrived before the reading
    if (kept_up.add(ms * kMs, received, due) && after == 0) after = ms;
    alone |= rate_alone.add(ms * kMs, received);
  }
  EXPECT_EQ(after, 41u);
  EXPECT_FALSE(alone);
}

}  // namespace
}  // namespace feedrate::test
