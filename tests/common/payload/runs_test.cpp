#include "common/payload/runs.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "common/payload/payload.hpp"

/// Compares every version of the vector code that this CPU supports with definitions of payload, echo and checksum that
/// are written out byte by byte.
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
    for (std::size_t at = word; at < std::min(word + 4, payload); ++at) {  // propagates the carry
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

/// Correct echoes of the messages `ids`.
struct Echoes {
  Echoes(std::vector<std::uint64_t> of, std::size_t payload)
      : ids(std::move(of)), payload(payload), slots(ids.size() * stride_of(payload), kUntouched) {  // with padding
    for (std::size_t i = 0; i < ids.size(); ++i) restore(i);
  }
  Messages results() { return {slots.data(), stride_of(payload), ids.size()}; }
  void restore(std::size_t i) {
    const std::vector<std::byte> echo = echo_of(ids[i], payload);
    results().header(i) = {ids[i], static_cast<std::uint32_t>(payload), sum_of(echo)};
    std::copy(echo.begin(), echo.end(), results().payload(i));
  }
  bool right(const RunPasses& passes) const {
    std::vector<std::uint64_t> found(ids.size());
    const Checked checked =
        passes.check_echoes(kSeed, payload, {slots.data(), stride_of(payload), ids.size()}, found.data());
    if (checked.consecutive) std::iota(found.begin(), found.end(), checked.first_id);
    return checked.right && found == ids;
  }

  std::vector<std::uint64_t> ids;
  std::size_t payload;
  std::vector<std::byte> slots;
};
std::vector<std::uint64_t> ids_in_runs(std::size_t count, std::size_t run) {
  std::vector<std::uint64_t> ids(count);
  for (std::size_t i = 0; i < count; ++i) ids[i] = kFirst + i / run * 1000 + i % run;
  return ids;
}

TEST_P(EveryVersion, AcceptsOnlyCorrectEchoes) {
  for (const std::size_t payload : payloads()) {
    Echoes echoes(ids_in_runs(11, 11), payload);
    ASSERT_TRUE(echoes.right(GetParam())) << payload;
    for (std::size_t i = 0; i < echoes.ids.size(); ++i) {
      for (std::size_t at = i; at < sizeof(Header) + payload; at += 1 + payload / 100) {
        std::byte& changed = echoes.slots[i * stride_of(payload) + at];
        changed ^= std::byte{0x10};
        EXPECT_FALSE(echoes.right(GetParam())) << payload << " bytes, byte " << at << " of result " << i;
        changed ^= std::byte{0x10};
      }
    }
    for (std::size_t i = 0; payload >= 8 && i < echoes.ids.size(); ++i) {  // a correct sum is not enough
      std::byte* const words = echoes.results().payload(i);
      std::rotate(words, words + 4, words + payload / 4 * 4);
      EXPECT_FALSE(echoes.right(GetParam())) << payload << " bytes, words moved in result " << i;
      echoes.restore(i);
    }
    EXPECT_TRUE(echoes.right(GetParam())) << payload;
  }
}

TEST_P(EveryVersion, AcceptsEchoesInAnyNumberAndOrder) {
  for (const std::size_t payload : {0, 8, 64, 100, 256, 257, 1000}) {
    for (std::size_t count = 0; count < 20; ++count) {
      for (const std::size_t run : {1, 3, 20}) {
        Echoes echoes(ids_in_runs(count, run), payload);
        EXPECT_TRUE(echoes.right(GetParam())) << payload << " bytes, " << count << " in runs of " << run;
        for (std::size_t i = 0; i < count; ++i) {
          ++echoes.results().header(i).checksum;
          EXPECT_FALSE(echoes.right(GetParam())) << payload << " bytes, " << count << ": " << i;
          echoes.restore(i);
          ++echoes.results().header(i).id;
          EXPECT_FALSE(echoes.right(GetParam())) << payload << " bytes, " << count << ": id of " << i;
          echoes.restore(i);
        }
      }
    }
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
