#include "common/stages.hpp"

#include <numeric>

#include "common/clock.hpp"
#include "kernels/workload_of.hpp"
#include "tests/support/cells.hpp"

/// Where a message's time goes: stages that are there add up to the whole, and a delay shows where it was made.
namespace feedrate::test {
namespace {

/// Echoes, slowly.
struct SlowEcho {
  static constexpr auto kName = "test_slow_echo";
  static constexpr auto kDescription = "test: 300 us of work";
  explicit SlowEcho(const WorkloadOptions&) {}
  FEEDRATE_HD static bool accepts(std::size_t) { return true; }
  FEEDRATE_HD static std::size_t result_bytes(std::size_t payload) { return payload; }
  static std::string refuse(std::size_t) { return ""; }
  template <class Group>
  FEEDRATE_HD std::uint32_t operator()(const Group& group, const Vec16* in, std::size_t bytes, Vec16* out) const {
    std::uint32_t sum = 0;
    const std::uint64_t end = now_ns() + 300'000;
    while (now_ns() < end) {
    }
    map_pieces(
        group, (bytes + 15) / 16, [&](std::size_t i) { return in[i]; },
        [&](std::size_t i, Vec16 piece) {
          sum += trim_and_sum(piece, i, bytes);
          out[i] = piece;
        });
    return sum;
  }
  static void reference(const std::byte* payload, std::size_t bytes, std::byte* result) {
    std::memcpy(result, payload, bytes);
  }
};
const WorkloadRegistration<SlowEcho> slow_echo;

Json run_point(const Point& point, bool no_stages = false) {
  RunSettings settings = brief(2000);
  settings.no_stages = no_stages;
  Session session("cpu", 0, {}, "test", settings);
  return run_cell(session, point);
}

double sum_of_means(const Json& stages) {
  return std::accumulate(stages.begin(), stages.end(), 0.0,
                         [](double sum, const Json& stage) { return sum + stage["mean"].get<double>(); });
}

std::vector<std::string> names_of(const Json& stages) {
  std::vector<std::string> names;
  for (const char* name : kStageNames) {
    if (stages.contains(name)) names.emplace_back(name);
  }
  return names;
}

Point lone(const std::string& queue, const std::string& transfer = "pinned") {
  Point point;
  point.queue = queue;
  point.transfer = transfer;
  point.device = "cpu";
  point.window = 1;
  return point;
}

TEST(Stages, AddUpToTheWhole) {
  const std::map<std::string, std::vector<std::string>> expected{
      {"pinned", {"sent", "dequeued", "copied_in", "kernel_end", "copied_out", "returned", "collected"}},
      {"mapped", {"sent", "dequeued", "kernel_end", "returned", "collected"}},
      {"pageable", {"sent", "dequeued", "copied_out", "returned", "collected"}}};
  for (const auto& [transfer, names] : expected) {
    const Json row = run_point(lone("host_polled", transfer));
    expect_clean(row);
    EXPECT_EQ(names_of(row["stages_ns"]), names) << transfer;
    EXPECT_EQ(row["stages_ns"]["collected"]["samples"], 2000);
    const double whole = row["latency_ns"]["mean"];
    EXPECT_NEAR(sum_of_means(row["stages_ns"]), whole, 0.02 * whole) << transfer;
  }
}

TEST(Stages, OfOpenLoadBeginWhenAMessageIsDue) {
  Point point = lone("host_polled");
  point.window = 64;
  point.producers = 2;
  point.arrivals = "poisson";
  point.rate = 4000;
  const Json row = run_point(point);
  const double whole = row["latency_ns"]["mean"];
  EXPECT_NEAR(sum_of_means(row["stages_ns"]), whole, 0.02 * whole);
  EXPECT_NEAR(row["stages_ns"]["sent"]["mean"].get<double>(), row["send_lag_ns"]["mean"].get<double>(), 0.02 * whole);
}

TEST(Stages, ADelayShowsWhereItWasMade) {
  Point point = lone("host_polled");
  point.workload = "test_slow_echo";
  const Json stages = run_point(point)["stages_ns"];
  EXPECT_GT(stages["kernel_end"]["p50"], 300'000);
  for (const char* other : {"dequeued", "copied_in", "copied_out", "returned", "collected"}) {
    EXPECT_LT(stages[other]["p50"], 150'000) << other;
  }
}

TEST(Stages, QueuesWithoutAWorkerHaveOneStage) {
  const Json row = run_point(lone("gpu_ring"));
  EXPECT_EQ(names_of(row["stages_ns"]), (std::vector<std::string>{"sent", "collected"}));
  EXPECT_FALSE(run_point(lone("gpu_ring"), true).contains("stages_ns"));
}

TEST(StageClock, FindsTheSampledInAnyOrder) {
  StageClock clock(2, 100);
  clock.sample(8);
  EXPECT_EQ(clock.every(), 8);
  std::vector<std::byte> memory(40 * 16);
  const Messages messages{memory.data(), 16, 40};
  const auto found = [&] {
    std::vector<std::uint64_t> ids;
    clock.for_sampled({memory.data(), 16, 40}, [&](std::uint64_t id) { ids.push_back(sequence_of(id)); });
    return ids;
  };
  for (std::size_t i = 0; i < 40; ++i) messages.header(i).id = message_id(1, 5 + i);
  EXPECT_EQ(found(), (std::vector<std::uint64_t>{8, 16, 24, 32, 40}));
  for (std::size_t i = 0; i < 40; ++i) messages.header(i).id = message_id(1, 44 - i);
  EXPECT_EQ(found(), (std::vector<std::uint64_t>{40, 32, 24, 16, 8}));
}

TEST(StageClock, KeepsNoTimesOfEarlierMessages) {
  StageClock clock(1, 8);
  clock.sample(1);
  clock.begin(message_id(0, 3), 100);
  clock.mark(message_id(0, 3), Stage::returned, 200);
  clock.mark(message_id(7, 3), Stage::returned, 200);  // nobody's
  EXPECT_EQ(clock.times(message_id(0, 3))[static_cast<unsigned>(Stage::returned)], 200);
  clock.begin(message_id(0, 3 + 1024), 300);  // a lap later
  EXPECT_EQ(clock.times(message_id(0, 3 + 1024)), (StageTimes{300}));
}

}  // namespace
}  // namespace feedrate::test
