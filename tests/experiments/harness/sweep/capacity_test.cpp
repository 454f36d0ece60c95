#include "experiments/harness/sweep/capacity.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "common/error.hpp"

namespace feedrate::test {
namespace {

// --- a try

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
  EXPECT_FALSE(judge(7, row_of("unsustainable", "backlog", 19e3, 19e3), slo).kept);
  EXPECT_FALSE(judge(7, {{"status", "unsustainable"}, {"reason", "nothing came"}}, slo).kept);
  const Probe slow = judge(7, row_of("ok", "", 30e3, 25e3), slo, prompt);
  EXPECT_EQ(slow.rate, 7);
  EXPECT_EQ(slow.why, "p99 30 µs");
  const Probe late = judge(7, row_of("ok", "", 21e3, 15e3), slo, prompt);
  EXPECT_FALSE(late.kept || late.disturbed) << "a late generator's miss must count as a miss";
  EXPECT_EQ(late.why, "p99 21 µs; 15 µs without the generator's own lag");
}

TEST(Capacity, DisturbedTryIsMarkedAndJudgedLikeAnyOther) {
  const Slo slo = parse_slo("p99:20us");
  const Probe good = judge(7, row_of("invalid", "disturbed", 19e3, 19e3), slo);
  EXPECT_TRUE(good.disturbed && good.kept);
  const Probe bad = judge(7, row_of("invalid", "disturbed", 30e3, 30e3), slo);
  EXPECT_TRUE(bad.disturbed && !bad.kept);
  EXPECT_EQ(bad.why, "p99 30 µs");
  Json behind = row_of("invalid", "disturbed", 19e3, 19e3);
  behind["details"]["load"]["behind"] = "the backlog grew";
  EXPECT_FALSE(judge(7, behind, slo, "", "/details/load/behind").kept) << "the cause hides the backlog";
  EXPECT_FALSE(judge(7, row_of("invalid", "generator", 19e3, 19e3), slo).kept);
}

// --- the test of one rate

Verdict verdict(std::initializer_list<std::pair<int, bool>> runs) {
  RateTest test;
  for (const auto& [tries, kept] : runs) {
    for (int i = 0; i < tries; ++i) test.add(kept);
  }
  return test.verdict();
}

TEST(RateTest, VerdictFollowsFromAllTries) {
  EXPECT_EQ(verdict({{16, true}}), Verdict::open);
  EXPECT_EQ(verdict({{17, true}}), Verdict::sustained);
  EXPECT_EQ(verdict({{9, false}}), Verdict::open) << "fewer than ten tries decide nothing";
  EXPECT_EQ(verdict({{10, false}}), Verdict::not_sustained);
  EXPECT_EQ(verdict({{3, false}, {12, true}}), Verdict::open);
  EXPECT_EQ(verdict({{3, false}, {28, true}}), Verdict::open);
  EXPECT_EQ(verdict({{3, false}, {40, true}}), Verdict::sustained);
  EXPECT_EQ(verdict({{30, false}, {170, true}}), Verdict::undecided) << "85 % is neither";
}

TEST(RateTest, EarlyMissesDoNotDecide) {
  EXPECT_EQ(verdict({{2, false}, {8, true}}), Verdict::open);
  EXPECT_EQ(verdict({{2, false}, {30, true}}), Verdict::sustained);
  EXPECT_EQ(verdict({{5, false}, {5, true}}), Verdict::not_sustained);
  EXPECT_EQ(verdict({{5, false}, {60, true}}), Verdict::sustained) << "a verdict must change with later tries";
  EXPECT_EQ(verdict({{30, true}, {2, false}}), verdict({{2, false}, {30, true}})) << "the order must not matter";
}

/// Each of 2000 rates gets `tries` tries, and a try meets the bound with this probability. Returns how many rates have
/// the verdict `wanted` after any of their tries.
unsigned ever(Verdict wanted, double probability, unsigned tries) {
  std::mt19937_64 random(1);
  std::bernoulli_distribution keeps(probability);
  unsigned found = 0;
  for (unsigned i = 0; i < 2000; ++i) {
    RateTest test;
    bool seen = false;
    for (unsigned done = 0; done < tries && !seen; ++done) {
      test.add(keeps(random));
      seen = test.verdict() == wanted;
    }
    found += seen ? 1 : 0;
  }
  return found;
}

TEST(RateTest, FalseVerdictsUnderContinuousMonitoringAreAtMostOnePercent) {
  EXPECT_LE(ever(Verdict::sustained, RateTest::kAtMost, 300), 20) << "of 2000";
  EXPECT_LE(ever(Verdict::not_sustained, RateTest::kAtLeast, 300), 20);
  EXPECT_LE(ever(Verdict::sustained, 0.5, 300), 4);
  EXPECT_LE(ever(Verdict::not_sustained, 0.99, 300), 4);
}

TEST(RateTest, ClearSharesAreDecidedWithinSixtyTries) {
  EXPECT_GE(ever(Verdict::sustained, RateTest::kAtLeast, 60), 1900) << "of 2000";
  EXPECT_GE(ever(Verdict::not_sustained, RateTest::kAtMost, 60), 1900);
  EXPECT_GE(ever(Verdict::undecided, RateTest::kBetween, 400), 1900);
}

// --- the search

/// The share of tries that meet the bound, by rate.
using Share = std::function<double(double rate)>;

class Simulation {
 public:
  explicit Simulation(std::uint64_t seed, Share share) : share_(std::move(share)), random_(seed) {}
  CapacitySearch::Try tries() {
    return [this](std::uint64_t rate) {
      const bool kept = chance_(random_) < share_(static_cast<double>(rate));
      return Probe{.rate = rate, .kept = kept, .why = kept ? "" : "too late"};
    };
  }
  std::mt19937_64& random() { return random_; }

 private:
  Share share_;
  std::mt19937_64 random_;
  std::uniform_real_distribution<> chance_;
};

/// A complete search of one queue.
Capacity search(const Share& share, std::uint64_t seed = 1, const SearchSettings& settings = {}) {
  Simulation queue(seed, share);
  CapacitySearch search(settings);
  search.find(queue.tries());
  settle_in_rounds({&search}, queue.random(),
                   [&](std::size_t) { return search.block(queue.tries(), queue.random()), true; });
  return search.answer();
}

Share sharp(double truth) {
  return [=](double rate) { return rate <= truth ? 1.0 : 0.0; };
}

/// Counts of answers. A false answer has an end whose rate has a share that the test must reject.
struct Count {
  unsigned right = 0, undecided = 0, wrong = 0;
  void add(const Capacity& capacity, const Share& share) {
    const bool low = capacity.low != 0 && share(static_cast<double>(capacity.low)) <= RateTest::kAtMost;
    const bool high = capacity.high != 0 && share(static_cast<double>(capacity.high)) >= RateTest::kAtLeast;
    ++(low || high ? wrong : capacity.undecided ? undecided : right);
    if (capacity.low != 0 && capacity.high != 0) {
      EXPECT_LT(capacity.low, capacity.high);
    }
  }
};

Count of_searches(const Share& share, unsigned searches = 400) {
  Count count;
  for (unsigned seed = 1; seed <= searches; ++seed) count.add(search(share, seed), share);
  return count;
}

TEST(Capacity, SharpThresholdIsBracketedWithinTheResolution) {
  for (const double truth : {15.0, 1'000.0, 123'456.0, 99'000'000.0}) {
    const Capacity capacity = search(sharp(truth));
    EXPECT_LE(static_cast<double>(capacity.low), truth);
    EXPECT_GT(static_cast<double>(capacity.high), truth);
    EXPECT_FALSE(capacity.undecided);
    EXPECT_TRUE(capacity.between.empty());
    EXPECT_LE(static_cast<double>(capacity.high), 1.1 * static_cast<double>(capacity.low) + 1) << truth;
    EXPECT_LE(capacity.probes.size(), 60) << truth;
    EXPECT_EQ(capacity.limit.substr(0, 9), "met in 0 ") << capacity.limit;
    EXPECT_TRUE(capacity.limit.ends_with(": too late")) << capacity.limit;
  }
}

TEST(Capacity, NoisyThresholdIsRarelyMisjudged) {
  // The share falls from 1 to 0 within 10 % of the true capacity on either side.
  const Share noisy = [](double rate) { return std::clamp((1.1e6 - rate) / 0.2e6, 0.0, 1.0); };
  const Count count = of_searches(noisy);
  EXPECT_LE(count.wrong, 20u) << "of 400";
  EXPECT_GE(count.right, 300u) << count.undecided << " undecided";
}

TEST(Capacity, OccasionalMissesBelowTheThresholdDoNotMoveIt) {
  const Share share = [](double rate) { return rate <= 1e6 ? 0.97 : 0.3; };
  const Count count = of_searches(share);
  EXPECT_LE(count.wrong, 20u) << "of 400";
  EXPECT_GE(count.right, 360u) << count.undecided << " undecided";
}

TEST(Capacity, SharesThatAreHardestToJudgeAreRarelyMisjudged) {
  const Share share = [](double rate) { return rate <= 1e6 ? RateTest::kAtLeast : RateTest::kAtMost; };
  const Count count = of_searches(share);
  EXPECT_LE(count.wrong, 20u) << "of 400";
  EXPECT_GE(count.right, 200u) << count.undecided << " undecided";
}

TEST(Capacity, BandOfRatesBetweenTheSharesGetsNoFalseVerdict) {
  const Share share = [](double rate) { return rate <= 1e6 ? 1.0 : rate <= 2e6 ? 0.85 : 0.0; };
  Count count;
  for (unsigned seed = 1; seed <= 400; ++seed) {
    const Capacity capacity = search(share, seed);
    count.add(capacity, share);
    if (capacity.undecided) {
      EXPECT_FALSE(capacity.between.empty()) << seed;
    }
    if (capacity.undecided && capacity.high != 0) {
      EXPECT_GT(capacity.high, 1.1 * static_cast<double>(capacity.low));
    }
    if (!capacity.undecided) {
      EXPECT_LE(capacity.high, 1.1 * static_cast<double>(capacity.low) + 1);
    }
  }
  EXPECT_LE(count.wrong, 20u) << "of 400";
}

TEST(Capacity, HalfOfTheTriesAreNotEnough) {
  SearchSettings settings;
  settings.most = 1'000'000;
  unsigned sustained = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    sustained += search([](double) { return 0.5; }, seed, settings).low != 0 ? 1 : 0;
  }
  EXPECT_LE(sustained, 4) << "of 200 searches with several rates each";
}

TEST(Capacity, FirstTwoMissesOfARateDoNotMoveTheAnswer) {
  std::map<std::uint64_t, unsigned> tries;
  const auto probe = [&](std::uint64_t rate) {
    const bool unlucky = rate > 800'000 && ++tries[rate] <= 2;
    return Probe{.rate = rate, .kept = rate <= 1'000'000 && !unlucky, .why = "too late"};
  };
  std::mt19937_64 random(1);
  CapacitySearch search({});
  search.find(probe);
  settle_in_rounds({&search}, random, [&](std::size_t) { return search.block(probe, random), true; });
  const Capacity capacity = search.answer();
  EXPECT_FALSE(capacity.undecided);
  EXPECT_GT(capacity.low, 900'000u);
  EXPECT_GT(capacity.high, 1'000'000u);
}

TEST(Capacity, LuckyFirstTryDoesNotDecide) {
  unsigned calls = 0;
  // The first try above the true capacity succeeds by luck, and all others fail.
  const Capacity capacity =
      search([&](double rate) { return rate <= 1000 || (rate > 1000 && calls++ == 0) ? 1.0 : 0.0; });
  EXPECT_LE(capacity.low, 1000u);
  EXPECT_GT(capacity.high, 1000u);
  EXPECT_FALSE(capacity.undecided);
}

TEST(Capacity, CapacityOutsideTheRangeIsBracketedOnOneSideOnly) {
  const Capacity none = search([](double) { return 0.0; });
  EXPECT_EQ(none.low, 0u);
  EXPECT_EQ(none.high, 10u);
  EXPECT_FALSE(none.undecided);
  const Capacity all = search([](double) { return 1.0; });
  EXPECT_EQ(all.low, 500'000'000u);
  EXPECT_EQ(all.high, 0u);
  EXPECT_FALSE(all.undecided);
}

TEST(Capacity, AnswerIncludesEveryTry) {
  std::mt19937_64 random(3);
  std::uniform_real_distribution<> chance;
  std::size_t made = 0, disturbed = 0;
  const CapacitySearch::Try probe = [&](std::uint64_t rate) {
    const bool marked = chance(random) < 0.2;
    ++made;
    disturbed += marked ? 1 : 0;
    const bool kept = static_cast<double>(rate) < 1e6 * (0.9 + 0.2 * chance(random));
    return Probe{.rate = rate, .kept = kept, .why = "late", .disturbed = marked};
  };
  CapacitySearch search({});
  search.find(probe);
  settle_in_rounds({&search}, random, [&](std::size_t) { return search.block(probe, random), true; });
  const Capacity capacity = search.answer();
  EXPECT_EQ(capacity.probes.size(), made);
  EXPECT_EQ(capacity.disturbed, disturbed);
  std::map<std::uint64_t, std::vector<unsigned>> counted, judged;
  for (const Probe& one : capacity.probes) {
    auto& counts = counted.try_emplace(one.rate, 3).first->second;
    ++counts[0], counts[1] += one.kept ? 1 : 0, counts[2] += one.disturbed ? 1 : 0;
  }
  for (const Judged& one : capacity.rates) judged[one.rate] = {one.tries, one.kept, one.disturbed};
  EXPECT_EQ(judged, counted) << "all tries must count, disturbed ones included";
  const Json row = to_json(capacity);
  EXPECT_EQ(row["tries"], made);
  EXPECT_EQ(row["disturbed"], disturbed);
}

TEST(Capacity, SearchThatEndsEarlyIsUndecidedAndListsTheRatesBetween) {
  Simulation queue(1, [](double rate) { return rate <= 1e6 ? 0.97 : 0.6; });
  const auto after = [&](unsigned blocks) {
    CapacitySearch search({});
    search.find(queue.tries());
    for (unsigned i = 0; i < blocks; ++i) search.block(queue.tries(), queue.random());
    return search.answer();
  };
  const Capacity none = after(3);
  EXPECT_TRUE(none.undecided);
  EXPECT_EQ(none.low, 0u);
  EXPECT_EQ(none.high, 0u);
  EXPECT_EQ(none.between.size(), none.rates.size()) << "no rate is judged";
  EXPECT_TRUE(to_json(none)["undecided"]);
  // One side is decided before the other.
  CapacitySearch search({});
  const auto half = [&](std::uint64_t rate) {
    return Probe{
        .rate = rate, .kept = rate <= 1'000'000 || (rate < 1'200'000 && queue.random()() % 7 != 0), .why = "late"};
  };
  search.find(half);
  while (search.answer().low == 0) search.block(half, queue.random());
  const Capacity low = search.answer();
  if (low.high == 0) {
    EXPECT_TRUE(low.undecided);
  }
  for (const Judged& one : low.between) EXPECT_GT(one.rate, low.low);
}

TEST(Capacity, TriesOfTheTwoRatesAlternateInRandomOrder) {
  const Capacity capacity = search(sharp(1e6));
  std::vector<bool> at_low;  // in the order of the tries at the two ends
  for (const Probe& one : capacity.probes) {
    if (one.rate == capacity.low || one.rate == capacity.high) at_low.push_back(one.rate == capacity.low);
  }
  ASSERT_GE(at_low.size(), 24u);
  std::size_t first = 0, longest = 0, run = 0;
  for (std::size_t i = 1; i < at_low.size(); ++i) {
    run = at_low[i] == at_low[i - 1] ? run + 1 : 0;
    longest = std::max(longest, run);
    first += i % 2 == 0 && at_low[i] ? 1 : 0;
  }
  EXPECT_LE(longest, 2u) << "the rates must not be tried in succession";
  EXPECT_GE(first, 3u);
  EXPECT_LE(first, at_low.size() / 2 - 3) << "neither rate is always first";
}

/// Searches of several queues share a machine whose capacity falls to a fifth for one minute.
TEST(Capacity, BadMinuteMisleadsFewAnswers) {
  constexpr double kTrySeconds = 0.5;
  constexpr unsigned kSearches = 12, kRuns = 40;
  Count count;
  std::mt19937_64 random(7);
  for (unsigned run = 0; run < kRuns; ++run) {
    const double begin = std::uniform_real_distribution<>(0, 240)(random);
    double now = 0;
    std::vector<CapacitySearch> searches(kSearches, CapacitySearch({}));
    std::vector<const CapacitySearch*> all;
    for (const CapacitySearch& each : searches) all.push_back(&each);
    const auto probe = [&](std::uint64_t rate) {
      now += kTrySeconds;
      const double truth = now > begin && now < begin + 60 ? 0.2e6 : 1e6;
      return Probe{.rate = rate, .kept = static_cast<double>(rate) <= truth, .why = "late"};
    };
    for (CapacitySearch& each : searches) each.find(probe);
    settle_in_rounds(all, random, [&](std::size_t at) { return searches[at].block(probe, random), true; });
    for (const CapacitySearch& each : searches) count.add(each.answer(), sharp(1e6));
  }
  EXPECT_LE(count.wrong, kSearches * kRuns / 20) << "right " << count.right << ", undecided " << count.undecided;
  EXPECT_GE(count.right, kSearches * kRuns * 3 / 4);
}

TEST(Rounds, EverySearchHasOneBlockARoundAndSixMoreAfterAllHaveSettled) {
  std::mt19937_64 random(1);
  std::vector<CapacitySearch> searches(3, CapacitySearch({}));
  std::vector<Simulation> queues;
  for (unsigned i = 0; i < 3; ++i) queues.emplace_back(i + 1, sharp(1e6));
  std::vector<std::size_t> order;
  settle_in_rounds({&searches[0], &searches[1], &searches[2]}, random, [&](std::size_t at) {
    searches[at].block(queues[at].tries(), random);
    order.push_back(at);
    return at != 2 || std::ranges::count(order, 2u) < 5;  // the third search runs out of time
  });
  EXPECT_EQ(std::ranges::count(order, 2u), 5) << "a search that ended must not continue";
  for (std::size_t round = 0; round < 5; ++round) {
    std::vector<std::size_t> one(order.begin() + static_cast<long>(3 * round),
                                 order.begin() + static_cast<long>(3 * round + 3));
    std::ranges::sort(one);
    EXPECT_EQ(one, (std::vector<std::size_t>{0, 1, 2})) << "round " << round;
  }
  for (const std::size_t at : {0u, 1u}) {
    const Capacity capacity = searches[at].answer();
    for (const Judged& one : capacity.rates) {
      if (one.rate == capacity.low || one.rate == capacity.high) {
        EXPECT_GE(one.tries, 23u) << "17 decide, 6 follow";
      }
    }
  }
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
