#include "kernels/runs.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "kernels/payload.hpp"

/// Every version of the vector code that this CPU can run, against the definitions of payload, echo and checksum
/// written out byte by byte.
namespace feedrate {
namespace {

constexpr std::uint64_t kSeed = 42, kFirst = message_id(3, 1000);
constexpr std::byte kUntouched{0xA5};

std::byte message_byte(std::uint64_t id, std::size_t at) {
  const std::uint64_t word = first_word(kSeed, id) + at / 8 * kStep;
  return static_cast<std::byte>(word >> (8 * (at % 8)));
}

std::vector<std::byte> message_of(std::uint64_t id, std::size_t payload) {
  std::vector<std::byte> message(payload);
  for (std::size_t at = 0; at < payload; ++at) message[at] = message_byte(id, at);
  return message;
}

std::vector<std::byte> echo_of(std::uint64_t id, std::size_t payload) {
  std::vector<std::byte> echo = message_of(id, payload);
  for (std::size_t word = 0; word < payload; word += 4) {
    for (std::size_t at = word; at < std::min(word + 4, payload); ++at) {  // the carry, until one byte takes it
      echo[at] = static_cast<std::byte>(std::to_integer<unsigned>(echo[at]) + 1);
      if (echo[at] != std::byte{0}) break;
    }
  }
  return echo;
}

std::uint32_t sum_of(const std::vector<std::byte>& bytes) {
  std::uint32_t sum = 0;
  for (std::size_t at = 0; at < bytes.size(); ++at) sum += std::to_integer<std::uint32_t>(bytes[at]) << (8 * (at % 4));
  return sum;
}

std::vector<std::size_t> payloads() {
  std::vector<std::size_t> sizes(200);
  std::iota(sizes.begin(), sizes.end(), 0);
  sizes.insert(sizes.end(), {1000, 4096, 4099});
  return sizes;
}

class EveryVersion : public testing::TestWithParam<RunPasses> {};

TEST_P(EveryVersion, FillsHeadersAndPayloadsAndNothingElse) {
  for (const std::size_t payload : payloads()) {
    for (const std::size_t count : {1, 7, 8, 19}) {
      const std::size_t stride = stride_of(payload);
      std::vector<std::byte> slots(count * stride, kUntouched);
      const Messages messages{slots.data(), stride, count};
      GetParam().fill(kSeed, kFirst, payload, messages);
      for (std::size_t i = 0; i < count; ++i) {
        EXPECT_EQ(messages.header(i).id, kFirst + i);
        EXPECT_EQ(messages.header(i).length, payload);
        EXPECT_EQ(messages.header(i).checksum, 0u);
        std::vector<std::byte> expected = message_of(kFirst + i, payload);
        expected.resize(stride - sizeof(Header), kUntouched);
        ASSERT_TRUE(std::equal(expected.begin(), expected.end(), messages.payload(i))) << payload << " bytes, " << i;
      }
    }
  }
}

TEST_P(EveryVersion, TakesRightEchoesAndNoOthers) {
  for (const std::size_t payload : payloads()) {
    constexpr std::size_t kCount = 11;
    const std::size_t stride = stride_of(payload);
    std::vector<std::byte> slots(kCount * stride, kUntouched);  // padding is nobody's business
    const Messages results{slots.data(), stride, kCount};
    for (std::size_t i = 0; i < kCount; ++i) {
      const std::vector<std::byte> echo = echo_of(kFirst + i, payload);
      results.header(i) = {kFirst + i, static_cast<std::uint32_t>(payload), sum_of(echo)};
      std::copy(echo.begin(), echo.end(), results.payload(i));
    }
    const auto checked = [&] { return GetParam().check_echoes(kSeed, payload, {slots.data(), stride, kCount}); };
    const auto right = [&] { return checked().right; };
    ASSERT_TRUE(right() && checked().consecutive) << payload;
    for (std::size_t i = 0; i < kCount; ++i) {
      for (std::size_t at = i; at < sizeof(Header) + payload; at += 1 + payload / 100) {
        std::byte& changed = slots[i * stride + at];
        changed ^= std::byte{0x10};
        const bool of_id = at < sizeof(Header::id);
        EXPECT_EQ(checked().consecutive, !of_id) << payload << " bytes, byte " << at << " of result " << i;
        // The shortest payloads may be those of another message, too.
        EXPECT_TRUE(!right() || (of_id && payload < 8)) << payload << " bytes, byte " << at << " of result " << i;
        changed ^= std::byte{0x10};
      }
    }
    for (std::size_t i = 0; payload >= 8 && i < kCount; ++i) {  // a sum that is right does not excuse the words
      const std::vector<std::byte> echo = echo_of(kFirst + i, payload);
      std::rotate(results.payload(i), results.payload(i) + 4, results.payload(i) + payload / 4 * 4);
      EXPECT_FALSE(right()) << payload << " bytes, words moved in result " << i;
      std::copy(echo.begin(), echo.end(), results.payload(i));
    }
    EXPECT_TRUE(right()) << payload;
    std::swap_ranges(slots.begin(), slots.begin() + stride, slots.begin() + stride);
    EXPECT_TRUE(right() && !checked().consecutive) << payload << " bytes, in another order";
  }
}

INSTANTIATE_TEST_SUITE_P(Runs, EveryVersion, testing::ValuesIn(run_passes().begin(), run_passes().end()),
                         [](const auto& info) {
                           std::string name = info.param.instructions;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace feedrate
