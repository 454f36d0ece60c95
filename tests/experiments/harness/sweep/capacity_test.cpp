#include "experiments/harness/sweep/capacity.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "common/error.hpp"

namespace feedrate::test {
namespace {

using Sustained = std::function<bool(std::uint64_t)>;
CapacitySearch::Try tried(const Sustained& sustained) {
  return [sustained](std::uint64_t rate) { return Probe{.rate = rate, .kept = sustained(rate), .why = "too late"}; };
}
Capacity search(const Sustained& sustained) {
  CapacitySearch search({});
  search.find(tried(sustained));
  return search.answer();
}

TEST(Capacity, CapacityOfAQueueWithoutNoiseIsBracketed) {
  for (const std::uint64_t truth : {15, 1'000, 123'456, 99'000'000}) {
    const Capacity capacity = search([=](std::uint64_t rate) { return rate <= truth; });
    EXPECT_LE(capacity.low, truth);
    EXPECT_GT(capacity.high, truth);
    EXPECT_LE(static_cast<double>(capacity.high), 1.06 * static_cast<double>(capacity.low) + 1) << truth;
    EXPECT_LE(capacity.probes.size(), 36) << truth;
    EXPECT_EQ(capacity.limit_at, capacity.high);
    EXPECT_EQ(capacity.limit, "met in 0 of 2 tries: too late");
  }
}

Json row_of(const char* status, const char* cause, double p99, double without_own_lag) {
  return {{"status", status},
          {"cause", cause},
          {"reason", cause},
          {"figures", {{"latency_ns", {{"p99", p99}}}}},
          {"details", {{"load", {{"without_own_lag_ns", {{"p99", without_own_lag}}}}}}}};
}

TEST(Capacity, ProbeIsJudgedByItsRow) {
  const Slo slo = parse_slo("p99:20us");
  const std::string prompt = "/details/load/without_own_lag_ns";
  EXPECT_TRUE(judge(7, row_of("ok", "", 19e3, 18e3), slo).kept);
  EXPECT_TRUE(judge(7, row_of("invalid", "disturbed", 19e3, 19e3), slo).disturbed) << "although it met the bound";
  EXPECT_TRUE(judge(7, row_of("invalid", "disturbed", 30e3, 30e3), slo).disturbed) << "although it missed the bound";
  EXPECT_FALSE(judge(7, row_of("unsustainable", "backlog", 19e3, 19e3), slo).kept);
  EXPECT_FALSE(judge(7, {{"status", "unsustainable"}, {"reason", "nothing came"}}, slo).kept);
  const Probe slow = judge(7, row_of("ok", "", 30e3, 25e3), slo, prompt);
  EXPECT_EQ(slow.rate, 7);
  EXPECT_EQ(slow.why, "p99 30 µs");
  const Probe late = judge(7, row_of("ok", "", 21e3, 15e3), slo, prompt);
  EXPECT_FALSE(late.kept || late.disturbed) << "a late generator's miss must count as a miss";
  EXPECT_EQ(late.why, "p99 21 µs; 15 µs without the generator's own lag");
}

TEST(RateTest, VerdictDependsOnTheTriesAlone) {
  const auto verdict = [](std::initializer_list<int> tries) {
    RateTest test;
    for (const int kept : tries) test.add(kept != 0);
    return test.verdict();
  };
  EXPECT_EQ(verdict({1, 1, 1, 1, 1, 1, 1, 1, 1}), Verdict::open);
  EXPECT_EQ(verdict({1, 1, 1, 1, 1, 1, 1, 1, 1, 1}), Verdict::sustained);
  EXPECT_EQ(verdict({0}), Verdict::open);
  EXPECT_EQ(verdict({0, 0}), Verdict::not_sustained);
  EXPECT_EQ(verdict({0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}), Verdict::open) << "a miss weighs as much as six successes";
  EXPECT_EQ(verdict({0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}), Verdict::not_sustained)
      << "later tries must change nothing";
}

/// Number of rates, out of `searches`, that get the verdict `wanted` if each try meets the bound with this probability.
unsigned judged_as(Verdict wanted, double probability, unsigned searches = 2000) {
  std::mt19937_64 random(1);
  std::bernoulli_distribution keeps(probability);
  unsigned found = 0;
  for (unsigned i = 0; i < searches; ++i) {
    RateTest test;
    while (test.verdict() == Verdict::open) test.add(keeps(random));
    found += test.verdict() == wanted ? 1 : 0;
  }
  return found;
}

TEST(RateTest, ErrorRateIsAsSpecified) {
  EXPECT_LE(judged_as(Verdict::sustained, 0.5), 10) << "of 2000";
  EXPECT_LE(judged_as(Verdict::sustained, RateTest::kAtMost), 120);
  EXPECT_LE(judged_as(Verdict::not_sustained, RateTest::kAtLeast), 120);
  EXPECT_GE(judged_as(Verdict::sustained, RateTest::kAtLeast), 1880);
}

/// Searches a queue that meets the bound with this probability at every rate.
Capacity search_of(double probability, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::bernoulli_distribution keeps(probability);
  SearchSettings settings;
  settings.most = 1'000'000;
  CapacitySearch search(settings);
  const auto probe = tried([&](std::uint64_t) { return keeps(random); });
  search.find(probe);
  search.again(probe);
  return search.answer();
}

TEST(Capacity, RateThatMeetsTheBoundInHalfOfTheTriesIsNotSustained) {
  unsigned sustained = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) sustained += search_of(0.5, seed).low != 0 ? 1 : 0;
  EXPECT_LE(sustained, 2) << "of 200 searches, each of which tests about 15 rates";
}

TEST(Capacity, RateThatMeetsTheBoundInNineteenOfTwentyTriesIsSustained) {
  unsigned most = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) most += search_of(0.97, seed).low >= 500'000 ? 1 : 0;
  EXPECT_GE(most, 160) << "of 200 searches: the test errs for 5 % of the rates, which can happen twice per search";
}

TEST(Capacity, AnswerIncludesEveryTry) {
  std::mt19937_64 random(3);
  std::uniform_real_distribution<> chance;
  std::size_t made = 0;
  CapacitySearch search({});
  const CapacitySearch::Try probe = [&](std::uint64_t rate) {
    ++made;
    if (chance(random) < 0.2) return Probe{.rate = rate, .why = "disturbed", .disturbed = true};
    return Probe{.rate = rate, .kept = static_cast<double>(rate) < 1e6 * (0.9 + 0.2 * chance(random)), .why = "late"};
  };
  search.find(probe);
  search.again(probe);
  const Capacity capacity = search.answer();
  EXPECT_EQ(capacity.probes.size(), made);
  std::map<std::uint64_t, unsigned> counted, judged;
  for (const Probe& one : capacity.probes) counted[one.rate] += one.disturbed ? 0 : 1;
  for (const Judged& one : capacity.rates) judged[one.rate] += one.tries;
  EXPECT_EQ(judged, counted) << "exactly the undisturbed tries must count";
}

TEST(Capacity, SearchWithOnlyDisturbedTriesEndsUndecided) {
  const CapacitySearch::Try probe = [](std::uint64_t rate) {
    return Probe{.rate = rate, .why = "disturbed", .disturbed = true};
  };
  CapacitySearch search({});
  search.find(probe);
  EXPECT_EQ(search.answer().low, 0);
  EXPECT_EQ(search.answer().high, 0);
}

TEST(Capacity, CapacityOutsideTheRangeIsBracketedOnOneSideOnly) {
  const Capacity none = search([](std::uint64_t) { return false; });
  EXPECT_EQ(none.low, 0);
  EXPECT_EQ(none.high, 10);
  const Capacity all = search([](std::uint64_t) { return true; });
  EXPECT_EQ(all.low, 500'000'000);
  EXPECT_EQ(all.high, 0);
}

/// A rate is sustained with a probability that falls from 1 to 0 within +-10 % of the true capacity.
TEST(Capacity, IntervalOfANoisyQueueContainsTheTruthAndTwoSearchesOverlap) {
  constexpr double kTruth = 1e6;
  unsigned missed = 0, apart = 0;
  std::mt19937_64 random(1);
  const auto noisy = [&](std::uint64_t rate) {
    const double probability = std::clamp((1.1 * kTruth - static_cast<double>(rate)) / (0.2 * kTruth), 0.0, 1.0);
    return std::uniform_real_distribution<>()(random) < probability;
  };
  for (int i = 0; i < 200; ++i) {
    const Capacity a = search(noisy), b = search(noisy);
    missed += static_cast<double>(a.low) > 1.1 * kTruth || static_cast<double>(a.high) < 0.9 * kTruth ? 1 : 0;
    apart += a.low > b.high || b.low > a.high ? 1 : 0;
    EXPECT_LT(a.low, a.high);
  }
  EXPECT_EQ(missed, 0);
  EXPECT_LE(apart, 10) << "of 200";
}

/// The state of the machine, and thus the true capacity, differs between the two searches and the final tries.
TEST(Capacity, IntervalContainsBothTruthsAfterTryingAgain) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<> truths(0.5e6, 2e6);
  const auto below = [](double truth) { return tried([=](auto rate) { return static_cast<double>(rate) <= truth; }); };
  for (int i = 0; i < 200; ++i) {
    const double then[] = {truths(random), truths(random)}, later = truths(random);
    CapacitySearch a({}), b({});
    a.find(below(then[0]));
    b.find(below(then[1]));
    const std::size_t first = a.answer().probes.size();
    a.again(below(later));
    b.again(below(later));
    for (const auto& [search, own] : {std::pair{&a, then[0]}, std::pair{&b, then[1]}}) {
      const Capacity capacity = search->answer();
      EXPECT_LE(static_cast<double>(capacity.low), std::min(own, later));
      EXPECT_GT(static_cast<double>(capacity.high), std::max(own, later));
    }
    EXPECT_LT(a.answer().low, b.answer().high);
    EXPECT_LT(b.answer().low, a.answer().high);
    EXPECT_LE(a.answer().probes.size() - first, 40u) << "the verdict on a sustained rate takes ten tries";
  }
}

TEST(Capacity, CapacityBeyondTheRangeIsTriedAgain) {
  CapacitySearch none({}), all({});
  none.find(tried([](auto) { return false; }));
  none.again(tried([](auto rate) { return rate <= 100; }));
  EXPECT_EQ(none.answer().low, 0);
  EXPECT_GT(none.answer().high, 100);
  EXPECT_LT(none.answer().high, 400);
  all.find(tried([](auto) { return true; }));
  all.again(tried([](auto rate) { return rate <= 400'000'000; }));
  EXPECT_LE(all.answer().low, 400'000'000);
  EXPECT_GT(all.answer().low, 200'000'000);
  EXPECT_EQ(all.answer().high, 0) << "the highest rate was sustained once";
}

TEST(Capacity, LuckyFirstTryDoesNotDecide) {
  unsigned calls = 0;
  // The first try above the true capacity succeeds by luck, and all others fail.
  const Capacity capacity = search([&](std::uint64_t rate) { return rate <= 1000 || (rate > 1000 && calls++ == 0); });
  EXPECT_GE(capacity.low, 700);
  EXPECT_LE(capacity.low, 1000);
  EXPECT_GT(capacity.high, 1000);
  EXPECT_LT(capacity.high, 6000);
}

TEST(Slo, PercentileAndTimeAreParsed) {
  EXPECT_EQ(parse_slo("p99:50us").percentile, "p99");
  EXPECT_DOUBLE_EQ(parse_slo("p99:50us").bound_ns, 50'000);
  EXPECT_DOUBLE_EQ(parse_slo("p999:1.5ms").bound_ns, 1.5e6);
  for (const char* text : {"", "p99", "p98:1ms", "p99:", "p99:50", "p99:us", "p99:0us", "p99:5min", ":1us"}) {
    EXPECT_THROW(parse_slo(text), BadInput) << text;
  }
}

}  // namespace
}  // namespace feedrate::test
