#include "experiments/feeding/stamped.hpp"

#include <gtest/gtest.h>

#include <cstring>

namespace feedrate {
namespace {

constexpr std::uint64_t kStampSeed = 5;
constexpr std::size_t kPayload = 4096, kCount = 256, kStride = stride_of(kPayload);

/// Stamped messages and the results that a workload computes from them.
class StampedMessages : public testing::TestWithParam<const char*> {
 protected:
  StampedMessages() { workload->prepare(kPayload); }
  Messages messages() { return {in.data(), kStride, kCount}; }
  Messages results() { return {out.data(), stride_of(workload->result_bytes(kPayload)), kCount}; }
  void send(std::uint64_t first_id) {
    stamped.fill(kStampSeed, first_id, kPayload, messages());
    work();
  }
  void work() {
    workload->run_on_cpu({in.data(), out.data(), kStride, static_cast<std::uint32_t>(results().stride), kCount});
  }
  Checked check() {
    std::vector<std::uint64_t> ids(kCount);
    return stamped.check(kStampSeed, kPayload, {out.data(), results().stride, kCount}, ids.data());
  }
  /// Index of a message that is, or is not, sampled.
  std::size_t place(bool sampled, std::uint64_t first_id = 0) {
    std::size_t at = 0;
    while (Stamped::sampled(kStampSeed, first_id + at) != sampled) ++at;
    return at;
  }
  bool right_with(std::size_t place, std::size_t byte) {
    results().payload(place)[byte] ^= std::byte{4};
    const bool right = check().right;
    results().payload(place)[byte] ^= std::byte{4};
    return right;
  }

  std::unique_ptr<Workload> workload = Workloads::instance().get("--workload", GetParam()).make({});
  PayloadPool pool = Stamped::pool_of(*workload, kPayload);
  Stamped stamped{*workload, pool, 1};
  std::vector<std::byte> in = std::vector<std::byte>(kCount * kStride), out = in;
};

TEST_P(StampedMessages, MessagesStayCorrectLapAfterLapInTheSameSlots) {
  for (std::uint64_t lap = 0; lap < 4; ++lap) {
    send(lap * kCount);
    const Checked checked = check();
    EXPECT_TRUE(checked.right) << lap;
    EXPECT_TRUE(checked.consecutive);
    EXPECT_EQ(checked.first_id, lap * kCount);
  }
}

TEST_P(StampedMessages, WrongStampIsAlwaysFound) {
  send(0);
  for (std::size_t at = 0; at < kCount; ++at) {
    for (const std::size_t byte : {0, 31, 63}) EXPECT_FALSE(right_with(at, byte)) << at << " " << byte;
  }
}

TEST_P(StampedMessages, WrongByteAfterTheStampIsFoundInTheSample) {
  send(0);
  const std::size_t last = workload->result_bytes(kPayload) - 1;
  for (const std::size_t byte : {std::size_t{64}, last / 2, last}) {
    EXPECT_FALSE(right_with(place(true), byte)) << byte;
    EXPECT_TRUE(right_with(place(false), byte)) << "only sampled messages are read in full";
  }
}

// The device adds up every byte of a result, so a misread byte changes the sum.
TEST_P(StampedMessages, ByteMisreadByTheDeviceIsFoundInEveryMessage) {
  send(0);
  stamped.fill(kStampSeed, kCount, kPayload, messages());
  const std::size_t at = place(false, kCount);
  messages().payload(at)[kPayload - 1] ^= std::byte{4};
  work();
  EXPECT_FALSE(check().right);
}

TEST_P(StampedMessages, StaleResultWithAnotherIdIsFound) {
  send(0);
  for (std::size_t at = 0; at < kCount; ++at) results().header(at).id += kCount;
  EXPECT_FALSE(check().right);
}

TEST_P(StampedMessages, RestOfASlotIsRewrittenOnlyForAndAfterASample) {
  send(0);
  for (std::size_t at = 0; at < kCount; ++at) messages().payload(at)[kPayload - 1] = std::byte{0x5A};  // marks the slot
  std::size_t kept = 0, expected = 0;
  stamped.fill(kStampSeed, kCount, kPayload, messages());
  for (std::size_t at = 0; at < kCount; ++at) {
    const bool whole = Stamped::sampled(kStampSeed, at) || Stamped::sampled(kStampSeed, kCount + at);
    expected += whole ? 0 : 1;
    kept += messages().payload(at)[kPayload - 1] == std::byte{0x5A} && !whole ? 1 : 0;
  }
  EXPECT_EQ(kept, expected);
  EXPECT_GT(expected, kCount * 9 / 10);
}

TEST_P(StampedMessages, AnswersPassTheCheck) {
  stamped.answer(kStampSeed, 1000, kPayload, results());
  EXPECT_TRUE(check().right);
}

INSTANTIATE_TEST_SUITE_P(Of, StampedMessages, testing::Values("echo", "scale", "vecadd", "fma_chain"));

}  // namespace
}  // namespace feedrate
