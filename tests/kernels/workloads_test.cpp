#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <set>
#include <vector>

#include "common/error.hpp"
#include "common/payload/payload.hpp"
#include "kernels/workload_of.hpp"

namespace feedrate {
namespace {

/// Whether the results are correct and their ids count up from `first`.
bool all_match(const Workload& workload, std::uint64_t seed, std::uint64_t first, std::size_t payload,
               const ConstMessages& results) {
  std::vector<std::uint64_t> ids(results.count);
  const Checked checked = workload.check(seed, payload, results, ids.data());
  return checked.right && checked.consecutive && (results.empty() || checked.first_id == first);
}

struct FilledSlots {
  FilledSlots(const Workload& workload, std::size_t payload, std::size_t count)
      : in(count * stride_of(payload)),
        out(count * stride_of(workload.result_bytes(payload))),
        messages{in.data(), stride_of(payload), count},
        changeable{out.data(), stride_of(workload.result_bytes(payload)), count},
        results{out.data(), changeable.stride, count} {}
  BatchView view() const {
    return {in.data(), changeable.base, static_cast<std::uint32_t>(messages.stride),
            static_cast<std::uint32_t>(results.stride), static_cast<std::uint32_t>(messages.count)};
  }
  std::vector<std::byte> in, out;
  Messages messages, changeable;
  ConstMessages results;
};

class EveryWorkload : public testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<Workload> workload = Workloads::instance().get("--workload", GetParam()).make({});
};

TEST_P(EveryWorkload, FunctorAgreesWithTheReference) {
  for (const std::size_t payload : {0, 1, 2, 4, 7, 8, 15, 16, 17, 31, 32, 60, 64, 65, 96, 1000, 1004, 4096, 65536}) {
    if (!workload->why_unsupported(payload).empty()) continue;
    FilledSlots slots(*workload, payload, 5);
    workload->fill(42, message_id(3, 1000), payload, slots.messages);
    workload->run_on_cpu(slots.view());
    for (std::size_t i = 0; i < 5; ++i) {
      EXPECT_EQ(slots.results.header(i).id, message_id(3, 1000 + i));
    }
    EXPECT_TRUE(all_match(*workload, 42, message_id(3, 1000), payload, slots.results)) << "payload " << payload;
  }
}

TEST_P(EveryWorkload, EveryChangedByteIsDetected) {
  constexpr std::size_t kPayload = 96;
  FilledSlots slots(*workload, kPayload, 1);
  workload->fill(1, 7, kPayload, slots.messages);
  workload->run_on_cpu(slots.view());
  const auto matches = [&](std::uint64_t seed) { return workload->matches(seed, 7, kPayload, slots.results); };
  Header& header = slots.changeable.header(0);
  for (std::size_t i = 0; i < workload->result_bytes(kPayload); ++i) {
    slots.changeable.payload(0)[i] ^= std::byte{1};
    EXPECT_FALSE(matches(1)) << i;
    slots.changeable.payload(0)[i] ^= std::byte{1};
  }
  ++header.checksum;
  EXPECT_FALSE(matches(1)) << "checksum";
  --header.checksum;
  ++header.length;
  EXPECT_FALSE(matches(1)) << "length";
  --header.length;
  ++header.id;
  EXPECT_FALSE(matches(1)) << "another message's id";
  --header.id;
  EXPECT_FALSE(matches(2)) << "another seed";
  EXPECT_FALSE(workload->matches(1, 8, kPayload, slots.results)) << "another message's position";
  EXPECT_TRUE(matches(1));
}

TEST_P(EveryWorkload, OneWrongResultFailsItsRun) {
  constexpr std::size_t kPayload = 64, kCount = 19;  // more than two vectors of messages, the last incomplete
  FilledSlots slots(*workload, kPayload, kCount);
  workload->fill(1, 7, kPayload, slots.messages);
  workload->run_on_cpu(slots.view());
  for (std::size_t i = 0; i < kCount; ++i) {
    std::byte& changed = slots.changeable.payload(i)[i];
    changed ^= std::byte{1};
    EXPECT_FALSE(all_match(*workload, 1, 7, kPayload, slots.results)) << i;
    EXPECT_TRUE(all_match(*workload, 1, 7, kPayload, slots.results.first(i))) << i;
    EXPECT_TRUE(all_match(*workload, 1, 8 + i, kPayload, slots.results.from(i + 1))) << i;
    changed ^= std::byte{1};
  }
  EXPECT_TRUE(all_match(*workload, 1, 7, kPayload, slots.results));
}

TEST_P(EveryWorkload, WrongResultIsReportedWithExpectedAndFoundValues) {
  constexpr std::size_t kPayload = 96;
  FilledSlots slots(*workload, kPayload, 1);
  workload->fill(1, 7, kPayload, slots.messages);
  workload->run_on_cpu(slots.view());
  const auto said = [&] { return workload->difference(1, 7, kPayload, slots.results); };
  EXPECT_NE(said().find("it equals the result of the workload's reference()"), std::string::npos) << said();
  Header& header = slots.changeable.header(0);
  ++header.checksum;
  EXPECT_NE(said().find("checksum"), std::string::npos) << said();
  slots.changeable.payload(0)[9] ^= std::byte{1};
  EXPECT_NE(said().find("in the word at byte 8 expected 0x"), std::string::npos) << said();
  header.length = 5;
  EXPECT_NE(said().find("bytes, found 5"), std::string::npos) << said();
  header.length = kFailed | 2;
  EXPECT_NE(said().find("failed with code 2"), std::string::npos) << said();
}

/// Number of distinct payloads among these messages.
std::size_t distinct(const Messages& messages, std::size_t payload) {
  std::set<std::string> all;
  for (std::size_t i = 0; i < messages.count; ++i) {
    all.emplace(reinterpret_cast<const char*>(messages.payload(i)), payload);
  }
  return all.size();
}

TEST_P(EveryWorkload, PayloadsAreUniqueOrFromAPoolOfAThousand) {
  constexpr std::size_t kPayload = 64, kMessages = 100'000;
  FilledSlots slots(*workload, kPayload, kMessages);
  workload->fill(9, 0, kPayload, slots.messages);
  const std::size_t found = distinct(slots.messages, kPayload);
  if (GetParam() == "echo") {
    EXPECT_EQ(found, kMessages);
  } else {
    EXPECT_EQ(found, PayloadPool::kEntries);
    EXPECT_GE(found, 1024u);
  }
  FilledSlots later(*workload, kPayload, 1000);
  workload->fill(10, 0, kPayload, later.messages);  // another repetition
  std::size_t same = 0;
  for (std::size_t i = 0; i < 1000; ++i) {
    same += std::memcmp(slots.messages.payload(i), later.messages.payload(i), kPayload) == 0 ? 1 : 0;
  }
  EXPECT_LT(same, 10u);
}

TEST_P(EveryWorkload, PreparationDoesNotChangeResults) {
  const auto prepared = Workloads::instance().get("--workload", GetParam()).make({});
  for (const std::size_t payload : {32, 96, 4096}) {
    prepared->prepare(payload);
    FilledSlots slots(*workload, payload, 50), others(*workload, payload, 50);
    workload->fill(3, message_id(1, 70), payload, slots.messages);
    prepared->fill(3, message_id(1, 70), payload, others.messages);
    for (std::size_t i = 0; i < 50; ++i) {
      EXPECT_EQ(std::memcmp(slots.messages.payload(i), others.messages.payload(i), payload), 0) << i;
      EXPECT_EQ(others.messages.header(i).id, message_id(1, 70 + i));
      EXPECT_EQ(others.messages.header(i).length, payload);
    }
    workload->run_on_cpu(slots.view());
    EXPECT_TRUE(all_match(*prepared, 3, message_id(1, 70), payload, slots.results));
    slots.changeable.payload(49)[5] ^= std::byte{1};
    EXPECT_FALSE(all_match(*prepared, 3, message_id(1, 70), payload, slots.results));
    EXPECT_NE(prepared->difference(3, message_id(1, 119), payload, slots.results.from(49)).find("at byte 4"),
              std::string::npos);
    EXPECT_NE(prepared->how_checked(payload), "");
  }
}

/// A workload whose results are off by `kOff` units in the last place; its tolerance allows one.
template <unsigned kOff>
struct Inexact {
  static constexpr auto kName = "inexact", kDescription = "test: one float off";
  static constexpr Tolerance kTolerance{.ulps = 1};
  static bool accepts(std::size_t) { return true; }
  static std::size_t result_bytes(std::size_t payload) { return payload; }
  static std::string why_unsupported(std::size_t) { return ""; }
  template <class Group>
  std::uint32_t operator()(const Group&, const Vec16* in, std::size_t bytes, Vec16* out) const {
    std::uint32_t sum = 0;
    for (std::size_t i = 0; i < bytes / 4; ++i) sum += out[i / 4].word[i % 4] = in[i / 4].word[i % 4] + kOff;
    return sum;
  }
  static void shape(std::byte* payload, std::size_t bytes) { make_unit_floats(payload, bytes); }
  static void reference(const std::byte* payload, std::size_t bytes, std::byte* result) {
    std::memcpy(result, payload, bytes);
  }
};
template <unsigned kOff>
bool inexact_is_right() {
  WorkloadOf<Inexact<kOff>> workload;
  workload.prepare(64);
  FilledSlots slots(workload, 64, 10);
  workload.fill(1, 0, 64, slots.messages);
  workload.run_on_cpu(slots.view());
  return all_match(workload, 1, 0, 64, slots.results);
}

TEST(Tolerance, ToleranceOfAWorkloadIsApplied) {
  EXPECT_TRUE(inexact_is_right<0>());
  EXPECT_TRUE(inexact_is_right<1>());
  EXPECT_FALSE(inexact_is_right<2>());
}

TEST(Tolerance, ToleranceIsAbsoluteRelativeOrInUlps) {
  EXPECT_TRUE((Tolerance{.absolute = 0.1}.allows(1.0f, 1.09f)));
  EXPECT_FALSE((Tolerance{.absolute = 0.1}.allows(1.0f, 1.11f)));
  EXPECT_TRUE((Tolerance{.relative = 0.01}.allows(1000.0f, 1009.0f)));
  EXPECT_FALSE((Tolerance{.relative = 0.01}.allows(-1000.0f, -1011.0f)));
  EXPECT_TRUE((Tolerance{.ulps = 2}.allows(1.0f, std::nextafter(std::nextafter(1.0f, 2.0f), 2.0f))));
  EXPECT_TRUE((Tolerance{.ulps = 1}.allows(0.0f, -0.0f)));
  EXPECT_FALSE((Tolerance{}.allows(0.0f, -0.0f))) << "without a tolerance, bits must be equal";
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_FALSE((Tolerance{.absolute = 1e9}.allows(1.0f, nan)));
  EXPECT_TRUE((Tolerance{}.allows(nan, nan))) << "equal bits are always allowed";
}

TEST_P(EveryWorkload, OversizedMessageFailsAlone) {
  constexpr std::size_t kPayload = 64;
  FilledSlots slots(*workload, kPayload, 3);
  workload->fill(1, 0, kPayload, slots.messages);
  slots.messages.header(1).length = 4096;
  workload->run_on_cpu(slots.view());
  EXPECT_EQ(slots.results.header(1).length, kFailed | static_cast<std::uint32_t>(Fault::too_long));
  EXPECT_TRUE(workload->matches(1, 0, kPayload, slots.results));
  EXPECT_FALSE(workload->matches(1, 1, kPayload, slots.results.from(1)));
  EXPECT_TRUE(workload->matches(1, 2, kPayload, slots.results.from(2)));
}

std::vector<std::string> workload_names() {
  std::vector<std::string> names;
  // The last workload is a changed copy of the template (tests/CMakeLists.txt).
  for (const char* name : {"echo", "vecadd", "fma_chain", "scale", "shift"}) names.emplace_back(name);
  return names;
}
INSTANTIATE_TEST_SUITE_P(Workloads, EveryWorkload, testing::ValuesIn(workload_names()),
                         [](const auto& info) { return info.param; });

TEST(Echo, AddsOneToEveryWordAndSumsThem) {
  const auto echo = Workloads::instance().get("--workload", "echo").make({});
  FilledSlots slots(*echo, 6, 1);
  slots.messages.header(0) = {5, 6, 0};
  const unsigned char payload[6] = {0xFF, 0xFF, 0xFF, 0xFF, 0x01, 0x02};
  std::memcpy(slots.messages.payload(0), payload, sizeof payload);
  echo->run_on_cpu(slots.view());
  const unsigned char expected[6] = {0, 0, 0, 0, 0x02, 0x02};
  EXPECT_EQ(std::memcmp(slots.results.payload(0), expected, sizeof expected), 0);
  EXPECT_EQ(slots.results.header(0).checksum, 0x0202u);
  EXPECT_EQ(slots.results.header(0).length, 6u);
}

TEST(VecAdd, RejectsPayloadsThatAreNotTwoArrays) {
  const auto vecadd = Workloads::instance().get("--workload", "vecadd").make({});
  EXPECT_FALSE(vecadd->why_unsupported(20).empty());
  FilledSlots slots(*vecadd, 64, 1);
  vecadd->fill(1, 0, 64, slots.messages);
  slots.messages.header(0).length = 20;
  vecadd->run_on_cpu(slots.view());
  EXPECT_EQ(slots.results.header(0).length, kFailed | static_cast<std::uint32_t>(Fault::bad_length));
}

TEST(FmaChain, IntensityIsBounded) {
  const auto& entry = Workloads::instance().get("--workload", "fma_chain");
  ASSERT_EQ(entry.axes.size(), 1u);
  EXPECT_THROW(entry.axes[0].read("0"), BadInput);
  EXPECT_THROW(entry.axes[0].read("65537"), BadInput);
  EXPECT_EQ(entry.axes[0].read("0.5"), Value(0.5));
}

TEST(FmaChain, ResultOfAnotherMessageIsWrongForAnyChainLength) {
  for (const double flops : {1.0, 64.0, 8192.0, 65536.0}) {
    const auto chain = Workloads::instance().get("--workload", "fma_chain").make({{"flops-per-byte", flops}});
    constexpr std::size_t kPayload = 16;
    FilledSlots slots(*chain, kPayload, 2);
    chain->fill(1, 7, kPayload, slots.messages);
    chain->run_on_cpu(slots.view());
    EXPECT_TRUE(all_match(*chain, 1, 7, kPayload, slots.results)) << flops;
    std::swap(slots.changeable.header(0).id, slots.changeable.header(1).id);
    EXPECT_FALSE(chain->matches(1, 7, kPayload, slots.results.from(1))) << flops;
    EXPECT_FALSE(chain->matches(1, 8, kPayload, slots.results)) << flops;
    std::memcpy(slots.changeable.payload(0), slots.messages.payload(0), kPayload);
    EXPECT_FALSE(chain->matches(1, 8, kPayload, slots.results)) << "the unchanged payload, " << flops;
  }
}

TEST(FmaChain, ReferenceRoundsLikeTheChain) {
  std::mt19937 random(3);
  for (const double flops : {0.5, 1.0, 1.5, 777.5, 30000.0, 65536.0}) {
    const auto chain = Workloads::instance().get("--workload", "fma_chain").make({{"flops-per-byte", flops}});
    // Random floats, and those that pass 2 with their last bit set or not.
    std::vector<float> values{1, std::nextafter(1.0F, 2.0F), std::nextafter(2.0F, 1.0F), 1.5F, 0.5F, 2.5F, -7};
    for (unsigned i = 0; i < 9; ++i) values.push_back(std::uniform_real_distribution<float>(1, 2)(random));
    for (unsigned i = 0; i < 16; ++i) values.push_back(2 - static_cast<float>(i) * 0x1p-23F - 0x1p-5F);
    std::vector<float> results(values.size());
    const std::size_t bytes = values.size() * sizeof(float);
    chain->reference(reinterpret_cast<const std::byte*>(values.data()), bytes,
                     reinterpret_cast<std::byte*>(results.data()));
    const auto steps = std::lround(flops * 2);
    for (std::size_t i = 0; i < values.size(); ++i) {
      float x = values[i];
      for (long s = 0; s < steps; ++s) x = std::fma(-1.0F, x, s % 2 == 0 ? 3.0F : 3.0F + 0x1p-18F);
      EXPECT_EQ(results[i], x) << values[i] << " after " << steps;
    }
  }
}

TEST(MatmulWork, EveryRungAgreesWithTheReference) {
  for (const char* rung : {"naive", "register_tiles"}) {
    const auto workload = Workloads::instance().get("--workload", "matmul").make({{"work-rung", std::string(rung)}});
    for (const std::size_t payload : {128, 512, 1152, 8192}) {
      ASSERT_EQ(workload->why_unsupported(payload), "");
      FilledSlots slots(*workload, payload, 3);
      workload->fill(9, 0, payload, slots.messages);
      workload->run_on_cpu(slots.view());
      EXPECT_TRUE(all_match(*workload, 9, 0, payload, slots.results)) << rung << " " << payload;
      slots.changeable.payload(1)[payload / 2 - 1] ^= std::byte{0x80};
      EXPECT_FALSE(all_match(*workload, 9, 0, payload, slots.results));
    }
    EXPECT_NE(workload->why_unsupported(96), "");
  }
}

}  // namespace
}  // namespace feedrate
