#include "variants/feeding/transfers/slots.hpp"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <string>
#include <thread>

#include "kernels/workload.hpp"
#include "tests/support/device_around.hpp"

namespace feedrate::test {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kPayload = 64, kStride = stride_of(kPayload), kMessages = 4;

class Sleep final : public LaunchedKernel {
 public:
  void run_on_cpu(const BatchView&) const override { std::this_thread::sleep_for(2ms); }
  void with_cuda_launch(const BatchView&, unsigned, const UseCudaLaunch&) const override {}
};

/// Sleeps before each copy and launch.
class SlowStream final : public StreamAround {
 public:
  explicit SlowStream(std::unique_ptr<Stream> stream) : StreamAround(std::move(stream)) {}
  void copy_to_device(std::byte* device, const std::byte* host, std::size_t bytes) override {
    StreamAround::launch(BatchLaunch(sleep_, nothing_, 0));
    StreamAround::copy_to_device(device, host, bytes);
  }
  void copy_to_host(std::byte* host, const std::byte* device, std::size_t bytes) override {
    StreamAround::launch(BatchLaunch(sleep_, nothing_, 0));
    StreamAround::copy_to_host(host, device, bytes);
  }
  void launch(const Launchable& launchable) override {
    StreamAround::launch(BatchLaunch(sleep_, nothing_, 0));
    StreamAround::launch(launchable);
  }
  ~SlowStream() override { synchronize(); }  // before sleep_ is destroyed

 private:
  Sleep sleep_;
  const BatchView nothing_{};
};

/// A device whose n-th stream is slow.
class SlowDevice final : public DeviceAround {
 public:
  explicit SlowDevice(unsigned slow) : slow_(slow) {}
  std::unique_ptr<Stream> stream() override {
    if (made_++ != slow_) return DeviceAround::stream();
    return std::make_unique<SlowStream>(device_->stream());
  }

 private:
  unsigned slow_, made_ = 0;
};

/// Batches stay correct no matter which of the three streams is slow. Each wait is needed when the stream that it waits
/// for is the slow one.
class SlotsWithASlowStream : public testing::TestWithParam<unsigned> {};

TEST_P(SlotsWithASlowStream, KeepBatchesApart) {
  const auto workload = Workloads::instance().get("--workload", "echo").make({});
  SlowDevice device(GetParam());
  constexpr std::size_t kBatches = 12;
  const Buffer in = device.allocate_host(kBatches * kMessages * kStride, HostMemory::pinned);
  const Buffer out = device.allocate_host(kBatches * kMessages * kStride, HostMemory::pinned);
  workload->fill(1, 0, kPayload, {in.data(), kStride, kBatches * kMessages});
  SlotTransfer slots({device, *workload, kMessages, kStride, kStride, 32}, 2);
  std::size_t submitted = 0, back = 0;
  while (back < kBatches) {
    const std::size_t at = submitted * kMessages * kStride;
    if (submitted < kBatches &&
        slots.submit({{in.data() + at, kStride, kMessages}, {out.data() + at, kStride, kMessages}})) {
      ++submitted;
    }
    if (const auto done = slots.poll()) {
      EXPECT_EQ(done->in.base, in.data() + back * kMessages * kStride);
      ++back;
    }
  }
  std::array<std::uint64_t, kBatches * kMessages> ids{};
  const Checked checked = workload->check(1, kPayload, {out.data(), kStride, ids.size()}, ids.data());
  EXPECT_TRUE(checked.right && checked.consecutive);
  EXPECT_EQ(checked.first_id, 0u);
}

std::string slow_stream_name(const testing::TestParamInfo<unsigned>& info) {
  constexpr std::array kNames{"copying_in", "working", "copying_out", "none"};
  return kNames[info.param];
}
INSTANTIATE_TEST_SUITE_P(In, SlotsWithASlowStream, testing::Values(0, 1, 2, 3), slow_stream_name);

}  // namespace
}  // namespace feedrate::test
