#include "experiments/harness/timeline/timeline.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "common/error.hpp"

namespace feedrate {
namespace {

Activity work(Activity::Kind kind, std::uint64_t begin_ns, std::uint64_t end_ns, std::uint32_t stream = 7) {
  Activity activity;
  activity.kind = kind;
  activity.name = "work";
  activity.begin_ns = begin_ns;
  activity.end_ns = end_ns;
  activity.stream = stream;
  return activity;
}

Activity call(std::uint64_t begin_ns, std::uint64_t end_ns, std::uint32_t correlation, std::uint32_t thread = 40) {
  Activity activity = work(Activity::Kind::api, begin_ns, end_ns, 0);
  activity.name = "cudaLaunchKernel";
  activity.correlation = correlation;
  activity.thread = thread;
  return activity;
}

GpuUse use_of(const std::vector<Activity>& activities, std::uint64_t begin_ns = 1000, std::uint64_t end_ns = 2000) {
  return gpu_use(activities, begin_ns, end_ns);
}

TEST(GpuUse, GpuWithoutWorkIsIdle) {
  const GpuUse use = use_of({});
  EXPECT_EQ(use.busy, 0);
  EXPECT_EQ(use.gaps.count, 1u);
  EXPECT_EQ(use.gaps.longest_ns, 1000u);
  EXPECT_EQ(use.gaps.mean_ns, 1000);
}

TEST(GpuUse, EmptyIntervalHasNoUse) {
  for (const std::uint64_t end_ns : {1000, 999}) {
    const GpuUse use = use_of({work(Activity::Kind::kernel, 0, 5000)}, 1000, end_ns);
    EXPECT_EQ(use.busy, 0);
    EXPECT_EQ(use.gaps.count, 0u);
  }
}

TEST(GpuUse, TimeOfOverlappingWorkCountsOnce) {
  // Nested, overlapping and adjacent kernels: 1100…1500 is busy.
  const GpuUse use = use_of({work(Activity::Kind::kernel, 1100, 1400), work(Activity::Kind::kernel, 1200, 1300),
                             work(Activity::Kind::kernel, 1350, 1450), work(Activity::Kind::kernel, 1450, 1500)});
  EXPECT_DOUBLE_EQ(use.busy, 0.4);
  EXPECT_DOUBLE_EQ(use.at_once, 0.55);
  EXPECT_DOUBLE_EQ(use.kernel, 0.4);
  EXPECT_EQ(use.copy, 0);
  EXPECT_EQ(use.overlap, 0);
  EXPECT_EQ(use.gaps.count, 2u);
}

TEST(GpuUse, WorkIsClippedToTheInterval) {
  const GpuUse use = use_of({work(Activity::Kind::kernel, 0, 1100), work(Activity::Kind::to_host, 1900, 9000),
                             work(Activity::Kind::kernel, 10, 1000), work(Activity::Kind::kernel, 2000, 3000)});
  EXPECT_DOUBLE_EQ(use.kernel, 0.1);
  EXPECT_DOUBLE_EQ(use.to_host, 0.1);
  EXPECT_DOUBLE_EQ(use.busy, 0.2);
  EXPECT_EQ(use.gaps.count, 1u);
  EXPECT_EQ(use.gaps.longest_ns, 800u);
}

TEST(GpuUse, ResidentKernelIsBusyAllTheTime) {
  const GpuUse use = use_of({work(Activity::Kind::kernel, 0, 5000), work(Activity::Kind::to_device, 1000, 1250)});
  EXPECT_EQ(use.busy, 1);
  EXPECT_EQ(use.kernel, 1);
  EXPECT_DOUBLE_EQ(use.overlap, 0.25);
  EXPECT_EQ(use.gaps.count, 0u);
}

TEST(GpuUse, CopyDirectionsAreDistinguished) {
  const GpuUse use = use_of({work(Activity::Kind::to_device, 1000, 1400), work(Activity::Kind::to_host, 1300, 1600),
                             work(Activity::Kind::other_copy, 1500, 1700), work(Activity::Kind::kernel, 1350, 1550)});
  EXPECT_DOUBLE_EQ(use.to_device, 0.4);
  EXPECT_DOUBLE_EQ(use.to_host, 0.3);
  EXPECT_DOUBLE_EQ(use.copy, 0.7);
  EXPECT_DOUBLE_EQ(use.both_directions, 0.1);
  EXPECT_DOUBLE_EQ(use.overlap, 0.2);
  EXPECT_DOUBLE_EQ(use.busy, 0.7);
}

TEST(GpuUse, HostActivityDoesNotCount) {
  Activity range = work(Activity::Kind::range, 1000, 2000);
  EXPECT_EQ(use_of({range, call(1000, 2000, 1)}).busy, 0);
  EXPECT_DOUBLE_EQ(use_of({work(Activity::Kind::memset, 1000, 1500)}).busy, 0.5);  // neither kernel nor copy
}

TEST(GpuUse, GapsAreSummarised) {
  // A kernel of 1 ns after each gap of 1, 2 … 100 ns; the period ends with the last kernel.
  std::vector<Activity> kernels;
  std::uint64_t ns = 1000;
  for (std::uint64_t gap = 1; gap <= 100; ++gap, ++ns) {
    ns += gap;
    kernels.push_back(work(Activity::Kind::kernel, ns, ns + 1));
  }
  const GpuUse use = use_of(kernels, 1000, ns);
  EXPECT_EQ(use.gaps.count, 100u);
  EXPECT_DOUBLE_EQ(use.gaps.mean_ns, 50.5);
  EXPECT_EQ(use.gaps.p50_ns, 50u);
  EXPECT_EQ(use.gaps.p99_ns, 99u);
  EXPECT_EQ(use.gaps.longest_ns, 100u);
  const Json json = to_json(use);
  EXPECT_EQ(json.at("idle_gaps_ns"), (Json{{"count", 100}, {"mean", 50.5}, {"p50", 50}, {"p99", 99}, {"max", 100}}));
  EXPECT_DOUBLE_EQ(json.at("busy_share"), 100.0 / 5150);
}

TEST(GpuUse, WorkWithoutDurationDoesNotEndAGap) {
  const GpuUse use = use_of({work(Activity::Kind::kernel, 1500, 1500), work(Activity::Kind::kernel, 1700, 1600)});
  EXPECT_EQ(use.busy, 0);
  EXPECT_EQ(use.gaps.count, 1u);
  EXPECT_EQ(use.gaps.longest_ns, 1000u);
}

class TimelineFile : public testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(path); }
  Json written(const std::vector<Activity>& activities, const std::vector<Span>& spans, const Json& metadata = {}) {
    AtomicFile file(path);
    write_timeline(file, activities, spans, metadata);
    return Json::parse(std::ifstream(path));
  }
  std::filesystem::path path =
      std::filesystem::temp_directory_path() /
      (std::string("feedrate-") + testing::UnitTest::GetInstance()->current_test_info()->name() + ".json");
};

/// Events of a trace with this phase.
std::vector<Json> events(const Json& trace, const std::string& phase) {
  std::vector<Json> found;
  for (const Json& event : trace.at("traceEvents")) {
    if (event.at("ph") == phase) found.push_back(event);
  }
  return found;
}

/// Checks a trace against the published format: the kinds of events written here and the fields that each must have.
void expect_valid(const Json& trace) {
  ASSERT_TRUE(trace.is_object());
  EXPECT_EQ(trace.at("displayTimeUnit"), "ns");
  ASSERT_TRUE(trace.at("otherData").is_object());
  ASSERT_TRUE(trace.at("traceEvents").is_array());
  std::set<std::pair<int, std::uint64_t>> tracks, named_tracks;
  std::set<int> named_processes;
  std::map<std::tuple<Json, Json, Json>, int> open;  // asynchronous events by category, id and name
  std::map<Json, std::vector<Json>> flows;
  for (const Json& event : trace.at("traceEvents")) {
    SCOPED_TRACE(event.dump());
    ASSERT_TRUE(event.at("ph").is_string());
    ASSERT_TRUE(event.at("pid").is_number_integer());
    ASSERT_TRUE(event.at("tid").is_number_integer());
    ASSERT_TRUE(event.at("ts").is_number());
    ASSERT_TRUE(event.at("name").is_string());
    EXPECT_GE(event.at("ts"), 0);
    EXPECT_GT(event.at("tid"), 0);  // 0 is Perfetto's idle thread
    const auto phase = event.at("ph").get<std::string>();
    ASSERT_TRUE(phase == "M" || phase == "X" || phase == "b" || phase == "e" || phase == "s" || phase == "f");
    if (phase == "M") {
      EXPECT_TRUE(event.at("args").at("name").is_string());
      if (event.at("name") == "process_name") {
        EXPECT_TRUE(named_processes.insert(event.at("pid").get<int>()).second);
      } else {
        EXPECT_EQ(event.at("name"), "thread_name");
        EXPECT_TRUE(named_tracks.emplace(event.at("pid"), event.at("tid")).second);
      }
      continue;
    }
    tracks.emplace(event.at("pid"), event.at("tid"));
    EXPECT_TRUE(event.at("cat").is_string());
    if (phase == "X") {
      EXPECT_GE(event.at("dur"), 0);
    }
    if (phase == "b" || phase == "e") {
      EXPECT_TRUE(event.at("id").is_string());
      int& depth = open[{event.at("cat"), event.at("id"), event.at("name")}];
      depth += phase == "b" ? 1 : -1;
      EXPECT_GE(depth, 0) << "the event ends before it begins";
    }
    if (phase == "s" || phase == "f") flows[event.at("id")].push_back(event);
  }
  for (const auto& [key, depth] : open) EXPECT_EQ(depth, 0) << std::get<1>(key) << std::get<2>(key);
  for (const auto& [id, ends] : flows) {
    ASSERT_EQ(ends.size(), 2u) << id;
    EXPECT_EQ(ends[0].at("ph"), "s");
    EXPECT_EQ(ends[1].at("ph"), "f");
    EXPECT_EQ(ends[1].at("bp"), "e");
    for (const char* same : {"cat", "name"}) EXPECT_EQ(ends[0].at(same), ends[1].at(same));
  }
  for (const auto& track : tracks) {
    EXPECT_TRUE(named_processes.contains(track.first)) << track.first;
    EXPECT_TRUE(named_tracks.contains(track)) << track.first << " " << track.second;
  }
}

TEST_F(TimelineFile, EmptyTimelineIsValid) {
  const Json trace = written({}, {}, {{"queue", "gpu_ring"}});
  expect_valid(trace);
  EXPECT_EQ(trace.at("otherData"), (Json{{"queue", "gpu_ring"}, {"zero_ns", 0}}));
}

TEST_F(TimelineFile, EachEngineOfAStreamAndEachThreadHasATrack) {
  std::vector<Activity> activities{work(Activity::Kind::kernel, 10, 20, 7),  work(Activity::Kind::to_device, 0, 5, 7),
                                   work(Activity::Kind::to_host, 20, 25, 7), work(Activity::Kind::memset, 30, 31, 8),
                                   work(Activity::Kind::kernel, 40, 50, 8),  call(1, 2, 0, 40),
                                   work(Activity::Kind::range, 0, 3, 0)};
  activities.back().thread = 40;
  activities.push_back(call(1, 2, 0, 41));
  const Json trace = written(activities, {});
  expect_valid(trace);
  std::multiset<std::string> names;
  for (const Json& event : events(trace, "M")) names.insert(event.at("args").at("name"));
  EXPECT_EQ(names, (std::multiset<std::string>{"GPU", "host", "messages", "stream 7 kernels", "stream 7 copies",
                                               "stream 8 kernels", "stream 8 copies", "thread 40", "thread 41"}));
  EXPECT_EQ(events(trace, "X").size(), activities.size());
}

TEST_F(TimelineFile, TimesAreMicrosecondsSinceTheEarliest) {
  const std::uint64_t zero_ns = 1'234'567'890'123'456'789;
  Activity kernel = work(Activity::Kind::kernel, zero_ns + 1'002'003, zero_ns + 1'002'010);
  kernel.bytes = 4096;
  kernel.correlation = 9;
  const Json trace = written({kernel}, {{"producer 0", "sent", zero_ns, zero_ns + 1, 1}});
  expect_valid(trace);
  const Json event = events(trace, "X").at(0);
  EXPECT_EQ(event.at("ts"), 1002.003);
  EXPECT_EQ(event.at("dur"), 0.007);
  EXPECT_EQ(event.at("args"), (Json{{"correlation", 9}, {"bytes", 4096}}));
  EXPECT_EQ(trace.at("otherData").at("zero_ns"), zero_ns);
}

TEST_F(TimelineFile, NamesMayContainAnyBytes) {
  const std::string wild = "a \"quoted\" \\ name,\n\ttab \x01 \xc3\xa9";
  std::vector<Activity> activities{work(Activity::Kind::kernel, 0, 1), work(Activity::Kind::kernel, 2, 3)};
  activities[0].name = wild;
  activities[1].name = "no UTF-8: \xff";
  const Json trace = written(activities, {{wild, wild, 0, 1, 1}}, {{"note", wild}, {"broken", "\xff"}});
  expect_valid(trace);
  EXPECT_EQ(events(trace, "X").at(0).at("name"), wild);
  EXPECT_EQ(events(trace, "b").at(0).at("name"), wild);
  EXPECT_EQ(events(trace, "b").at(0).at("cat"), wild);
  EXPECT_EQ(trace.at("otherData").at("note"), wild);
}

TEST_F(TimelineFile, ArrowsLeadFromCallsToTheirWork) {
  std::vector<Activity> activities{call(10, 30, 1),
                                   call(12, 28, 1),
                                   call(40, 41, 2),
                                   work(Activity::Kind::kernel, 50, 60),
                                   work(Activity::Kind::kernel, 60, 70),
                                   work(Activity::Kind::kernel, 70, 80)};
  activities[3].correlation = activities[4].correlation = 1;  // one call launches a graph of many kernels
  activities[5].correlation = 3;                              // its call was not recorded
  const Json trace = written(activities, {});
  expect_valid(trace);
  const auto from = events(trace, "s"), to = events(trace, "f");
  ASSERT_EQ(from.size(), 2u);
  for (const Json& event : from) {
    EXPECT_EQ(event.at("ts"), 0);  // the outer call
    EXPECT_EQ(event.at("tid"), 40);
  }
  EXPECT_EQ(to.at(0).at("ts"), 0.040);
  EXPECT_EQ(to.at(1).at("ts"), 0.050);
  EXPECT_EQ(to.at(0).at("pid"), events(trace, "X").at(3).at("pid"));
  EXPECT_EQ(to.at(0).at("tid"), events(trace, "X").at(3).at("tid"));
}

TEST_F(TimelineFile, StagesOfAMessageNest) {
  // Two concurrent messages. The first has a stage inside another, a stage that ends with it, and one without duration.
  const std::uint64_t big = (std::uint64_t{5} << 56) + 1;
  const Json trace = written({}, {{"producer 0", "copied in", 20, 50, big},
                                  {"producer 0", "way", 10, 50, big},
                                  {"producer 0", "sent", 10, 20, big},
                                  {"producer 0", "returned", 50, 50, big},
                                  {"producer 0", "way", 15, 55, big + 1},
                                  {"producer 1", "way", 15, 55, big}});
  expect_valid(trace);
  EXPECT_EQ(events(trace, "b").size(), 6u);
  // Viewers sort by time and otherwise keep the order of the file. The last stage of a message to begin then ends
  // first.
  Json sorted = trace.at("traceEvents");
  std::stable_sort(sorted.begin(), sorted.end(), [](const Json& a, const Json& b) { return a.at("ts") < b.at("ts"); });
  std::map<std::pair<Json, Json>, std::vector<Json>> open;
  for (const Json& event : sorted) {
    if (event.at("ph") != "b" && event.at("ph") != "e") continue;
    auto& stack = open[{event.at("cat"), event.at("id")}];
    if (event.at("ph") == "b") {
      stack.push_back(event.at("name"));
    } else {
      ASSERT_FALSE(stack.empty());
      EXPECT_EQ(stack.back(), event.at("name")) << event;
      stack.pop_back();
    }
  }
  EXPECT_EQ(open.size(), 3u);
  EXPECT_TRUE(open.contains({"producer 0", "0x500000000000001"}));
}

TEST_F(TimelineFile, UnwritableTimelineIsAFailure) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "/dev/full does not exist";
  AtomicFile full("/dev/full");
  EXPECT_THROW(write_timeline(full, {}, {}, {}), Failure);
}

}  // namespace
}  // namespace feedrate
