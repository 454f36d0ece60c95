#include "common/device/clock_map.hpp"
#include "common/device/device_clock.hpp"

#include <cstdio>
#include <thread>

#include "common/clock.hpp"
#include "common/message/stages.hpp"
#include "kernels/workload.hpp"
#include "tests/support/cells.hpp"

namespace feedrate::test {
namespace {

class GpuClock : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto reason = cuda_unavailable(); !reason.empty()) GTEST_SKIP() << reason;
    device = open_device("cuda");
  }
  std::unique_ptr<Device> device;
};

TEST_F(GpuClock, ClockMapsToHostTimeWithinTwoMicroseconds) {
  const ClockReading first = device->read_clock();
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  const ClockReading middle = device->read_clock();
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  const ClockReading last = device->read_clock();
  const ClockMap map(first, last);
  const auto off = static_cast<double>(static_cast<std::int64_t>(map.to_host(middle.device_ns) - middle.host_ns));
  std::printf("within %.0f, %.0f, %.0f ns; drift %.3f ppm; middle reading off by %.0f ns\n", first.within_ns,
              middle.within_ns, last.within_ns, map.drift_ppm(), off);
  EXPECT_LT(map.within_ns(), 2000);
  EXPECT_GT(map.within_ns(), 10);  // a lower value would imply a signal faster than light
  EXPECT_LT(std::abs(map.drift_ppm()), 200);
  // A third reading lies on the line through the other two.
  EXPECT_LT(std::abs(off), map.within_ns() + middle.within_ns);
}

/// Events and kernels report times of the same clock, in the order in which they were queued.
TEST_F(GpuClock, ClockIsSharedByEventsAndKernels) {
  const auto echo = Workloads::instance().get("--workload", "echo").make({});
  StageClock stages(*device, 1, 1);
  stages.sample(1);
  const auto stream = device->stream();
  const auto before = device->event(true), after = device->event(true);
  const Buffer in = device->allocate_host(128, HostMemory::pinned),
               out = device->allocate_host(128, HostMemory::pinned);
  *reinterpret_cast<Header*>(in.data()) = {message_id(0, 0), 64, 0};
  for (int i = 0; i < 5; ++i) {  // the first launch loads the kernel
    const ClockReading reading = device->read_clock();
    stages.forget(message_id(0, 0));
    stages.mark(message_id(0, 0), Stage::sent, 1);
    const std::uint64_t begin = now_ns();
    stream->record(*before);
    stream->launch(*echo, {in.data(), out.data(), 80, 80, 1, stages.recorder()}, 32);
    stream->record(*after);
    stream->synchronize();
    const std::uint64_t end = now_ns();
    const ClockMap map(reading, device->read_clock());
    const StageTimes times = stages.times(message_id(0, 0));
    const auto at = [&](std::uint64_t ns) { return static_cast<double>(static_cast<std::int64_t>(ns - begin)); };
    const double start = at(map.to_host(times[static_cast<unsigned>(Stage::kernel_start)]));
    const double stop = at(map.to_host(times[static_cast<unsigned>(Stage::kernel_end)]));
    const double queued = at(map.to_host(before->ready_ns())), done = at(map.to_host(after->ready_ns()));
    std::printf("ns since begin: event %.0f, kernel %.0f to %.0f, event %.0f, host %.0f\n", queued, start, stop, done,
                at(end));
    const double slack = map.within_ns() + 2500;  // an event's anchor is accurate only to one launch
    EXPECT_GT(queued, -slack);
    EXPECT_GT(start, queued - slack);
    EXPECT_GE(stop, start);
    EXPECT_GT(done, stop - slack);
    EXPECT_LT(done, at(end) + slack);
  }
}

}  // namespace
}  // namespace feedrate::test
