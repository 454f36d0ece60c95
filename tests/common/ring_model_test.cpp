#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>

#include "tests/common/lane_program.hpp"
#include "tests/common/plain_ring_program.hpp"
#include "tests/support/long.hpp"

/// Runs the ring protocol on small rings in every possible way (tests/support/explorer.hpp). Each message arrives once,
/// with its own payload and, if promised, in order; nothing is overwritten before it was read; all threads end.
namespace feedrate::test {
namespace {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr bool kCanExplore = false;  // sanitizers cannot follow simulated threads, which share one real thread
#else
constexpr bool kCanExplore = true;
#endif

template <class Program>
Explored explore_lane(const char* name, const LaneSetup& setup) {
  Explorer explorer;
  const auto words = std::make_unique<LaneWords>(explorer, setup);
  const auto begin = std::chrono::steady_clock::now();
  Explored result = explorer.explore([&] { return std::make_unique<Program>(*words, setup); });
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  std::printf("%s: %llu states, %llu executions, %.2f s\n", name, static_cast<unsigned long long>(result.states),
              static_cast<unsigned long long>(result.executions), took.count());
  testing::Test::RecordProperty("states", static_cast<int>(result.states));
  testing::Test::RecordProperty("executions", static_cast<int>(result.executions));
  return result;
}

struct Named {
  const char* name;
  LaneSetup setup;
};
void PrintTo(const Named& named, std::ostream* out) { *out << named.name; }
class Model : public testing::Test {
 protected:
  void SetUp() override {
    if (!kCanExplore) GTEST_SKIP() << "sanitizers cannot follow simulated threads";
  }
};
class RingModel : public Model, public testing::WithParamInterface<Named> {};
class PlainRingModel : public Model {};
class RingModelFinds : public Model {};

void expect_correct(const Explored& result) {
  EXPECT_EQ(result.violation, "") << result.schedule;
  EXPECT_TRUE(result.complete) << "the exploration is incomplete";
  EXPECT_GT(result.ended, 0u);
}

/// Relaxed loads of the cursor may return arbitrarily old values; here they return the value before the first message.
struct OldHints : ModelMemory {
  static std::uint64_t load_relaxed(std::uint64_t&) { return 0; }
};

TEST_P(RingModel, EveryExecutionIsCorrect) {
  const auto& [name, setup] = GetParam();
  expect_correct(setup.hints ? explore_lane<LaneProgram<ModelMemory>>(name, setup)
                             : explore_lane<LaneProgram<OldHints>>(name, setup));
}

TEST_F(PlainRingModel, EveryExecutionIsCorrect) {
  Explorer explorer;
  PlainRingWords words(explorer);
  expect_correct(explorer.explore([&] { return std::make_unique<PlainRingProgram>(words); }));
}

constexpr auto kFlags = Notify::flags;
constexpr auto kAsFinished = ResultOrder::as_finished;
const auto name_of = [](const auto& info) { return info.param.name; };
// The fewest messages for each kind of lane; takes seconds.
INSTANTIATE_TEST_SUITE_P(
    Lanes, RingModel,
    testing::Values(
        Named{"counter", {.messages = 4}}, Named{"counter_four_slots", {.capacity = 4, .messages = 6, .publish = 2}},
        Named{"counter_released_in_mid_claim", {.capacity = 4, .messages = 5, .poll = 1}},
        Named{"counter_two_pollers", {.messages = 2, .pollers = 2, .drains = false}},
        Named{"counter_two_pollers_take_all",
              {.messages = 3, .pollers = 2, .publish = 2, .sharing = 1, .drains = false}},
        Named{"counter_two_pollers_drain", {.messages = 2, .pollers = 2}},
        Named{"counter_two_pollers_one_slot", {.capacity = 1, .messages = 2, .pollers = 2, .drains = false}},
        Named{"as_finished", {.messages = 3, .results = kAsFinished}},
        Named{"as_finished_two_pollers", {.messages = 2, .pollers = 2, .results = kAsFinished, .drains = false}},
        Named{"parking", {.messages = 3, .parks = true}}, Named{"flags", {.messages = 3, .notify = kFlags}},
        Named{"flags_two_pollers", {.messages = 2, .pollers = 2, .notify = kFlags}},
        Named{"flags_two_per_poll", {.messages = 3, .notify = kFlags, .publish = 2, .max_flagged = 2, .hints = false}},
        Named{"flags_claimed_ahead", {.messages = 2, .notify = kFlags, .publish = 2, .max_flagged = 2}},
        Named{"flags_claimed_ahead_two_pollers", {.messages = 1, .pollers = 2, .notify = kFlags, .max_flagged = 2}},
        Named{"flags_two_pollers_one_slot", {.capacity = 1, .messages = 2, .pollers = 2, .notify = kFlags}},
        Named{"flags_two_mirrors_one_slot",
              {.capacity = 1, .messages = 2, .pollers = 2, .mirrors = 2, .notify = kFlags}},
        Named{"flags_as_finished", {.messages = 1, .pollers = 2, .notify = kFlags, .results = kAsFinished}},
        Named{"flags_two_per_poll_two_pollers",
              {.messages = 1, .pollers = 2, .notify = kFlags, .max_flagged = 2, .hints = false}},
        Named{"parking_two_pollers", {.capacity = 1, .messages = 1, .pollers = 2, .drains = false, .parks = true}},
        Named{"flags_parking", {.messages = 2, .notify = kFlags, .parks = true}},
        Named{"flags_parking_two_pollers", {.messages = 1, .pollers = 2, .notify = kFlags, .parks = true}}),
    name_of);
// Rings that wrap more often, with more concurrent pollers; takes minutes.
INSTANTIATE_TEST_SUITE_P(
    Long, RingModel,
    testing::ValuesIn(in_long_tests(std::vector<Named>{
        {"counter", {.messages = 5}},
        {"counter_released_in_mid_claim", {.capacity = 4, .messages = 7, .poll = 1}},
        {"counter_two_pollers", {.messages = 3, .pollers = 2, .drains = false}},
        {"counter_two_pollers_take_all", {.messages = 5, .pollers = 2, .publish = 2, .sharing = 1, .drains = false}},
        {"counter_two_pollers_one_slot", {.capacity = 1, .messages = 3, .pollers = 2, .drains = false}},
        {"as_finished", {.messages = 4, .results = kAsFinished}},
        {"parking", {.messages = 4, .parks = true}},
        {"parking_two_pollers", {.capacity = 1, .messages = 2, .pollers = 2, .drains = false, .parks = true}},
        {"flags", {.messages = 5, .notify = kFlags}},
        {"flags_two_per_poll", {.messages = 4, .notify = kFlags, .publish = 2, .max_flagged = 2, .hints = false}},
        {"flags_two_per_poll_two_pollers",
         {.messages = 2, .pollers = 2, .notify = kFlags, .max_flagged = 2, .hints = false}},
        {"flags_claimed_ahead", {.messages = 3, .notify = kFlags, .publish = 2, .max_flagged = 2}},
        {"flags_two_pollers_one_slot", {.capacity = 1, .messages = 3, .pollers = 2, .notify = kFlags}},
        {"flags_two_mirrors", {.messages = 2, .pollers = 2, .mirrors = 2, .notify = kFlags}},
        {"flags_as_finished_two_pollers", {.messages = 2, .pollers = 2, .notify = kFlags, .results = kAsFinished}},
        {"flags_parking", {.messages = 3, .notify = kFlags, .parks = true}},
        // Two pollers on two slots; the ring wraps.
        {"as_finished_two_pollers_wrap", {.messages = 3, .pollers = 2, .results = kAsFinished, .drains = false}},
        {"flags_two_pollers_wrap", {.messages = 3, .pollers = 2, .notify = kFlags}},
        {"flags_as_finished_wrap", {.messages = 3, .pollers = 2, .notify = kFlags, .results = kAsFinished}},
        {"flags_two_mirrors_wrap", {.capacity = 1, .messages = 3, .pollers = 2, .mirrors = 2, .notify = kFlags}}})),
    name_of);

TEST_F(PlainRingModel, SymmetricPollersHalveTheStates) {
  const LaneSetup setup{.capacity = 1, .messages = 2, .pollers = 2, .drains = false};
  LaneSetup distinct = setup;
  distinct.alike = false;
  const Explored half = explore_lane<LaneProgram<ModelMemory>>("alike", setup),
                 all = explore_lane<LaneProgram<ModelMemory>>("distinct", distinct);
  expect_correct(half);
  expect_correct(all);
  EXPECT_NEAR(static_cast<double>(half.states), 0.5 * static_cast<double>(all.states),
              0.05 * static_cast<double>(all.states));
}

// --- planted faults, each of which the explorer must find ------------------------------------------------------------

/// Publishes with relaxed stores, which do not order the payload before the cursor.
struct RelaxedStores : ModelMemory {
  static void store_release(std::uint64_t& word, std::uint64_t value) { store_relaxed(word, value); }
  using ModelMemory::store_release;
};
struct RelaxedLoads : ModelMemory {
  static std::uint64_t load_acquire(std::uint64_t& word) { return load_relaxed(word); }
  using ModelMemory::load_acquire;
};
/// Stores the end of a claim without ordering its results before it.
struct RelaxedEnds : ModelMemory {
  static inline const LaneWords* words = nullptr;
  static void store_release(std::uint64_t& word, std::uint64_t value) {
    const bool is_end = &word >= std::begin(words->ends) && &word < std::end(words->ends);
    is_end ? store_relaxed(word, value) : ModelMemory::store_release(word, value);
  }
  using ModelMemory::store_release;
};
struct WithRelaxedEnds : LaneProgram<RelaxedEnds> {
  WithRelaxedEnds(LaneWords& words, const LaneSetup& setup) : LaneProgram(words, setup) { RelaxedEnds::words = &words; }
};
/// Lets two pollers make the same claim.
struct LooseClaims : ModelMemory {
  static bool lane_exchange(std::uint64_t& word, std::uint64_t expected, std::uint64_t value) {
    if (lane_peek(word) != expected) return false;
    store_relaxed(word, value);
    return true;
  }
};
/// Leaves after a plain load instead of an atomic exchange.
struct LooseLeaving : ModelMemory {
  static bool lane_exchange(std::uint64_t& word, std::uint64_t expected, std::uint64_t value) {
    if ((value & kGone) == 0) return ModelMemory::lane_exchange(word, expected, value);
    if (lane_peek(word) != expected) return false;
    store_relaxed(word, value);
    return true;
  }
};
/// Uses the flag of the first unit for all units of the slot.
struct FirstUnitOnly : ModelMemory {
  static Unit load_unit(const Unit& at) {
    static std::uint32_t first = 0;
    Unit unit = ModelMemory::load_unit(at);
    if (reinterpret_cast<std::uintptr_t>(&at) % (kSlotUnits * sizeof(Unit)) == 0) first = unit.flag;
    unit.flag = first;
    return unit;
  }
  static std::uint32_t load_unit(const Unit& at, std::byte* to) {
    const Unit unit = load_unit(at);
    std::memcpy(to, &unit, sizeof unit);
    return unit.flag;
  }
};
/// Releases slots before reading them.
class EarlyRelease : public LaneProgram<ModelMemory> {
  using LaneProgram::LaneProgram;
  bool collect_some() override {
    const ConstMessages results = collector_.poll(setup_.poll);
    if (results.empty()) return false;
    collector_.release(results.count);
    for (std::size_t i = 0; i < results.count; ++i, ++received_) {
      take(user_slot(results.base + i * results.stride).get());
    }
    return true;
  }
};
template <class Program>
void expect_found(const char* name, const LaneSetup& setup, const char* what) {
  const Explored result = explore_lane<Program>(name, setup);
  ASSERT_NE(result.violation, "");
  EXPECT_NE(result.violation.find(what), std::string::npos) << "found instead: " << result.violation;
  EXPECT_FALSE(result.schedule.empty());
  std::printf("%s%s\n", result.schedule.c_str(), result.violation.c_str());
}

TEST_F(RingModelFinds, CursorStoredBeforeItsPayload) {
  expect_found<LaneProgram<RelaxedStores>>("relaxed stores", {}, "while another thread writes it");
}
TEST_F(RingModelFinds, PayloadReadBeforeItsCursor) {
  expect_found<LaneProgram<RelaxedLoads>>("relaxed loads", {}, "while another thread writes it");
}
TEST_F(RingModelFinds, ClaimEndStoredBeforeItsResults) {
  expect_found<WithRelaxedEnds>("relaxed ends", {}, "while another thread writes it");
}
TEST_F(RingModelFinds, SlotsReleasedBeforeTheyWereRead) { expect_found<EarlyRelease>("early release", {}, "reads it"); }
TEST_F(RingModelFinds, MessageClaimedTwice) {
  expect_found<LaneProgram<LooseClaims>>("loose claims", {.messages = 2, .pollers = 2}, "poller");
}
TEST_F(RingModelFinds, LaneLeftWhileOthersClaim) {
  expect_found<LaneProgram<LooseLeaving>>("loose leaving",
                                          {.capacity = 1, .messages = 2, .pollers = 2, .drains = false, .parks = true},
                                          "while another thread writes it");
}
TEST_F(RingModelFinds, UnitsWithUncheckedFlags) {
  expect_found<LaneProgram<FirstUnitOnly>>("first unit only", {.notify = kFlags}, "a result is wrong");
}

}  // namespace
}  // namespace feedrate::test
