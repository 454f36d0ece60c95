// CUPTI recordings of a real GPU.
#include "experiments/harness/timeline/cupti.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <thread>

#include "common/clock.hpp"
#include "common/error.hpp"
#include "common/nvtx_range.hpp"
#include "features.hpp"
#include "kernels/workload.hpp"
#include "libraries/ring/lane_memory.hpp"
#include "tests/support/cupti.hpp"

namespace feedrate {
namespace {

using Kind = Activity::Kind;

/// A batch that is copied to the device, processed and copied back.
struct Batch {
  static constexpr std::size_t kPayload = 4096, kMessages = 64;
  explicit Batch(Device& device)
      : echo(Workloads::instance().get("--workload", "echo").make({})),
        stride(stride_of(kPayload)),
        host(device.allocate_host(stride * kMessages, HostMemory::pinned)),
        in(device.allocate_device(stride * kMessages)),
        out(device.allocate_device(stride * kMessages)) {
    echo->fill(1, 0, kPayload, {host.data(), stride, kMessages});
  }
  void run(Stream& stream) {
    stream.copy_to_device(in.data(), host.data(), host.size());
    stream.launch(*echo, {in.data(), out.data(), stride, stride, kMessages}, 256);
    stream.copy_to_host(host.data(), out.data(), host.size());
  }
  std::unique_ptr<Workload> echo;
  std::uint32_t stride;
  Buffer host, in, out;
};

std::vector<Activity> of_kind(const Recording& recording, Kind kind) {
  std::vector<Activity> found;
  std::copy_if(recording.activities.begin(), recording.activities.end(), std::back_inserter(found),
               [&](const Activity& activity) { return activity.kind == kind; });
  return found;
}

class ActivityOnGpu : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto reason = cuda_unavailable(); !reason.empty()) GTEST_SKIP() << reason;
    if (const auto reason = cupti_unavailable(); !reason.empty()) GTEST_SKIP() << reason;
    if (test::too_late_for_cupti()) GTEST_SKIP() << test::kTooLate;
    recorder = open_activity_recorder(16 << 20);
    device = open_device("cuda");
  }
  std::unique_ptr<ActivityRecorder> recorder;  // created before the device and destroyed after it
  std::unique_ptr<Device> device;
};

TEST_F(ActivityOnGpu, ActivityIsRecordedInHostTime) {
  constexpr std::size_t kRuns = 100;
  Batch batch(*device);
  const auto stream = device->stream();
  batch.run(*stream);
  stream->synchronize();  // not part of the recording
  recorder->begin();
  const std::uint64_t before = now_ns();
  for (std::size_t i = 0; i < kRuns; ++i) batch.run(*stream);
  stream->synchronize();
  const std::uint64_t after = now_ns();
  const Recording recording = recorder->end();
  EXPECT_EQ(recording.dropped, 0u);
  EXPECT_EQ(recording.untimed, 0u);

  const auto in = of_kind(recording, Kind::to_device), kernels = of_kind(recording, Kind::kernel),
             out = of_kind(recording, Kind::to_host), calls = of_kind(recording, Kind::api);
  ASSERT_EQ(in.size(), kRuns);
  ASSERT_EQ(kernels.size(), kRuns);
  ASSERT_EQ(out.size(), kRuns);
  EXPECT_EQ(calls.size(), 3 * kRuns);
  constexpr std::uint64_t kSlack = 50'000;  // the GPU's clock is converted to the host's
  for (const Activity& activity : recording.activities) {
    EXPECT_LE(activity.begin_ns, activity.end_ns) << activity.name;
    EXPECT_GE(activity.begin_ns + kSlack, before) << activity.name;
    EXPECT_LE(activity.end_ns, after + kSlack) << activity.name;
  }
  for (std::size_t i = 0; i < kRuns; ++i) {
    EXPECT_LE(in[i].begin_ns, kernels[i].begin_ns);
    EXPECT_LE(kernels[i].begin_ns, out[i].begin_ns);
    EXPECT_EQ(in[i].bytes, batch.host.size());
    EXPECT_EQ(in[i].stream, kernels[i].stream);
    EXPECT_NE(kernels[i].name.find("feedrate"), std::string::npos) << kernels[i].name;  // demangled
    const auto launched = [&](const Activity& work) {
      return std::any_of(calls.begin(), calls.end(), [&](const Activity& call) {
        return call.correlation == work.correlation && call.begin_ns <= work.begin_ns + kSlack;
      });
    };
    EXPECT_TRUE(launched(in[i]) && launched(kernels[i]) && launched(out[i])) << "no call recorded for run " << i;
  }
  const GpuUse use = gpu_use(recording.activities, before, after);
  EXPECT_GT(use.busy, 0);
  EXPECT_GT(use.kernel, 0);
  EXPECT_GT(use.to_device, 0);
  EXPECT_GT(use.to_host, 0);
  EXPECT_LE(use.busy, 1);
  std::puts(to_json(use).dump(1).c_str());
}

TEST_F(ActivityOnGpu, EachRecordingHasItsOwnActivity) {
  Batch batch(*device);
  const auto stream = device->stream();
  for (std::size_t runs = 1; runs <= 3; ++runs) {
    recorder->begin();
    for (std::size_t i = 0; i < runs; ++i) batch.run(*stream);
    stream->synchronize();
    EXPECT_EQ(of_kind(recorder->end(), Kind::kernel).size(), runs);
    batch.run(*stream);  // between recordings
    stream->synchronize();
  }
}

/// Nothing may wait for the resident kernel, either while it runs or when it is recorded.
TEST_F(ActivityOnGpu, ResidentKernelIsRecordedAfterItHasEnded) {
  Batch batch(*device);
  const auto stream = device->stream();
  RingConfig config;
  config.message_bytes = config.result_bytes = 64;
  PolledMemory memory(*device, polled_pieces(config));
  const auto lane = make_lane(*device, memory, config);
  const Buffer views = device->allocate_host(sizeof(LaneView), HostMemory::pinned);
  auto& view = *reinterpret_cast<LaneView*>(views.data());
  view = lane->view();
  recorder->begin();
  const std::uint64_t before = now_ns();
  auto resident = device->start_resident(*batch.echo, {&view, 1}, {});
  for (int i = 0; i < 1000; ++i) {
    batch.run(*stream);
    stream->synchronize();
  }
  EXPECT_TRUE(resident->running());
  lane->request_stop(kStopNow);
  resident.reset();
  const std::uint64_t after = now_ns();
  const Recording recording = recorder->end();
  EXPECT_EQ(recording.untimed, 0u);
  const auto kernels = of_kind(recording, Kind::kernel);
  EXPECT_EQ(kernels.size(), 1001u);
  const GpuUse use = gpu_use(recording.activities, before, after);
  EXPECT_GT(use.kernel, 0.9);
  EXPECT_GT(use.overlap, 0);
}

TEST_F(ActivityOnGpu, RunningKernelIsCountedAsUntimed) {
  Batch batch(*device);
  RingConfig config;
  config.message_bytes = config.result_bytes = 64;
  PolledMemory memory(*device, polled_pieces(config));
  const auto lane = make_lane(*device, memory, config);
  const Buffer views = device->allocate_host(sizeof(LaneView), HostMemory::pinned);
  auto& view = *reinterpret_cast<LaneView*>(views.data());
  view = lane->view();
  recorder->begin();
  auto resident = device->start_resident(*batch.echo, {&view, 1}, {});
  const Recording recording = recorder->end();
  EXPECT_TRUE(of_kind(recording, Kind::kernel).empty());
  EXPECT_EQ(recording.untimed, 1u);
  lane->request_stop(kStopNow);
}

TEST_F(ActivityOnGpu, DroppedRecordsAreCounted) {
  recorder.reset();
  recorder = open_activity_recorder(1 << 20);
  Batch batch(*device);
  const auto stream = device->stream();
  recorder->begin();
  for (int i = 0; i < 20'000; ++i) batch.run(*stream);
  stream->synchronize();
  const Recording recording = recorder->end();
  EXPECT_GT(recording.dropped, 0u);
  EXPECT_GT(recording.activities.size(), 1000u);
  EXPECT_EQ(recording.dropped + recording.untimed + recording.activities.size(), 6u * 20'000);
}

TEST_F(ActivityOnGpu, SecondRecorderIsRejected) { EXPECT_THROW(open_activity_recorder(1 << 20), Failure); }

#ifdef FEEDRATE_NVTX
TEST_F(ActivityOnGpu, RangesAreRecorded) {
  if (testing::UnitTest::GetInstance()->test_to_run_count() > 1) {
    GTEST_SKIP() << "NVTX has chosen its tool in an earlier test; run this test alone";
  }
  prepare_ranges();
  recorder->begin();
  const std::uint64_t before = now_ns();
  {
    const NvtxRange outer{"outer"};
    const NvtxRange inner{"inner"};
  }
  std::thread([] { const NvtxRange other{"other thread"}; }).join();
  const std::uint64_t after = now_ns();
  const auto ranges = of_kind(recorder->end(), Kind::range);
  ASSERT_EQ(ranges.size(), 3u);
  EXPECT_EQ(ranges[0].name, "outer");
  EXPECT_EQ(ranges[1].name, "inner");
  EXPECT_EQ(ranges[2].name, "other thread");
  EXPECT_LE(before, ranges[0].begin_ns);
  EXPECT_LE(ranges[0].begin_ns, ranges[1].begin_ns);
  EXPECT_LE(ranges[1].end_ns, ranges[0].end_ns);
  EXPECT_LE(ranges[2].end_ns, after);
  EXPECT_EQ(ranges[0].thread, ranges[1].thread);
  EXPECT_NE(ranges[0].thread, ranges[2].thread);
}
#endif

TEST(ActivityWithoutCupti, RecorderIsRejected) {
  if (cupti_unavailable().empty()) GTEST_SKIP() << "CUPTI is available";
  EXPECT_THROW(open_activity_recorder(), Failure);
}

}  // namespace
}  // namespace feedrate
