#include "common/ring/flags.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

namespace feedrate {
namespace {

constexpr std::uint64_t kLap = 16;  // slots per lap of the ring

/// A slot for messages of `payload` bytes, and a buffer to read a message into.
struct Slot {
  explicit Slot(std::size_t payload)
      : units(units_of(stride_of(payload))), slot(flagged_slot_bytes(stride_of(payload)) / sizeof(Unit), Unit{}) {
    read.resize((units + 1) * sizeof(Unit));
  }
  Flagged load(std::uint64_t number) { return load_flagged(slot.data(), number, read.data(), units); }

  std::uint32_t units;
  std::vector<Unit> slot;
  std::vector<std::byte> read;
};

/// A message whose bytes differ from one another and from those of messages with other ids. The 4 bytes after its last
/// unit are readable.
std::vector<std::byte> message_of(std::uint64_t id, std::uint32_t length) {
  std::vector<std::byte> message(stride_of(length) + sizeof(Unit));
  for (std::size_t i = sizeof(Header); i < message.size(); ++i) message[i] = static_cast<std::byte>(7 * i + id);
  *reinterpret_cast<Header*>(message.data()) = {id, length, 0};
  return message;
}
std::uint32_t units_of_length(std::size_t length) { return units_of(sizeof(Header) + length); }

TEST(Flags, MessagesOfAllLengthsArrive) {
  for (std::uint32_t length = 0; length <= 200; ++length) {
    for (const std::uint32_t longest : {length, 200u}) {
      Slot slot(longest);
      const auto message = message_of(length, length);
      store_flagged(slot.slot.data(), 5, message.data(), units_of_length(length));
      ASSERT_EQ(slot.load(5), Flagged::complete) << length;
      EXPECT_EQ(std::memcmp(slot.read.data(), message.data(), sizeof(Header) + length), 0) << length;
    }
  }
}

TEST(Flags, UnitsOfAnEarlierLapAreRejected) {
  constexpr std::uint32_t kLength = 60;
  const std::uint32_t units = units_of_length(kLength);
  Slot old(kLength), now(kLength);
  store_flagged(old.slot.data(), 3, message_of(1, kLength).data(), units);
  store_flagged(now.slot.data(), 3 + kLap, message_of(2, kLength).data(), units);
  EXPECT_EQ(old.load(3 + kLap), Flagged::missing);
  for (std::uint32_t torn = 0; torn < units; ++torn) {
    Slot slot = now;
    slot.slot[torn] = old.slot[torn];
    EXPECT_EQ(slot.load(3 + kLap), Flagged::missing) << "unit " << torn << " of the previous lap";
    slot.slot[torn] = now.slot[torn];
    EXPECT_EQ(slot.load(3 + kLap), Flagged::complete);
  }
}

TEST(Flags, ShorterMessageNeedsOnlyItsOwnUnits) {
  Slot slot(100);
  store_flagged(slot.slot.data(), 3, message_of(1, 100).data(), units_of_length(100));
  const auto message = message_of(2, 5);
  store_flagged(slot.slot.data(), 3 + kLap, message.data(), units_of_length(5));
  ASSERT_EQ(slot.load(3 + kLap), Flagged::complete);
  EXPECT_EQ(std::memcmp(slot.read.data(), message.data(), sizeof(Header) + 5), 0);
}

TEST(Flags, StopMarkIsNotAMessage) {
  Slot slot(20);
  slot.slot[0] = Unit{{}, kStopFlag};
  for (const std::uint64_t number : {std::uint64_t{0}, std::uint64_t{1}, (std::uint64_t{1} << 31) - 1}) {
    EXPECT_EQ(slot.load(number), Flagged::stop) << number;
  }
}

/// Flags must differ even around the point at which the numbers in them wrap.
TEST(Flags, NumbersNearTheWrapStayDistinct) {
  constexpr std::uint64_t kTurns[] = {1ull << 30, 1ull << 31, 1ull << 32, 3ull << 31};
  for (const std::uint64_t turn : kTurns) {
    for (std::uint64_t number = turn - 2 * kLap; number < turn + 2 * kLap; ++number) {
      EXPECT_EQ(flag_of(number) & kStopFlag, 0u) << number << " is read as a stop";
      EXPECT_NE(flag_of(number), 0u) << number << " is read as a unit that was never written";
      for (std::uint64_t lap = 1; lap <= 4; ++lap) {
        EXPECT_NE(flag_of(number), flag_of(number - lap * kLap)) << number;
        EXPECT_NE(flag_of(number), flag_of(number - (lap << 24))) << number << " in the largest ring";
      }
      Slot slot(20);
      const auto message = message_of(number, 20);
      store_flagged(slot.slot.data(), number, message.data(), units_of_length(20));
      EXPECT_EQ(slot.load(number), Flagged::complete);
      EXPECT_EQ(slot.load(number + kLap), Flagged::missing);
      // A unit that was never written, because all earlier messages were too short.
      slot.slot[1] = Unit{};
      EXPECT_EQ(slot.load(number), Flagged::missing) << number;
    }
  }
}

/// The message is polled repeatedly while its units arrive in any order; units that were read are kept between polls.
TEST(Flags, UnitsInAnyOrderMakeACompleteMessage) {
  constexpr std::uint32_t kLength = 400;
  std::mt19937 random(3);
  for (std::uint64_t number = 1; number <= 100; ++number) {
    Slot sent(kLength), slot(kLength);
    const auto message = message_of(number, kLength);
    store_flagged(sent.slot.data(), number, message.data(), sent.units);
    store_flagged(slot.slot.data(), number + kLap, message_of(7, kLength).data(), slot.units);  // an old lap
    std::vector<std::uint32_t> order(slot.units);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random);
    std::uint32_t done = 0;
    const auto poll = [&] { return load_flagged(slot.slot.data(), number, slot.read.data(), slot.units, done); };
    for (const std::uint32_t unit : order) {
      if (random() % 3 != 0) {
        ASSERT_EQ(poll(), Flagged::missing) << number;
        ASSERT_LT(done, slot.units);
      }
      slot.slot[unit] = sent.slot[unit];
    }
    ASSERT_EQ(poll(), Flagged::complete) << number;
    ASSERT_EQ(std::memcmp(slot.read.data(), message.data(), sizeof(Header) + kLength), 0) << number;
  }
}

TEST(Flags, OversizedHeaderIsReadOnlyToTheEndOfTheSlot) {
  constexpr std::uint32_t kLongest = 40;
  for (const std::uint32_t claimed : {kLongest + 100, 0x7FFF'FFFFu, 0xFFFF'FFFFu, kFailed, kFailed | 1u}) {
    Slot slot(kLongest);
    auto message = message_of(9, kLongest);
    reinterpret_cast<Header*>(message.data())->length = claimed;
    const std::byte guard{0xA5};
    slot.read.resize(slot.units * kUnitData + sizeof(Unit::flag));  // the maximum that may be written
    slot.read.push_back(guard);
    store_flagged(slot.slot.data(), 7, message.data(), slot.units);
    ASSERT_EQ(slot.load(7), Flagged::complete) << claimed;
    const Header& header = *reinterpret_cast<const Header*>(slot.read.data());
    EXPECT_EQ(header.id, 9u);
    EXPECT_EQ(header.length, claimed);
    EXPECT_EQ(slot.read.back(), guard);
  }
}

TEST(Flags, FailedResultHasOnlyAHeader) {
  const Unit first{{1, 0, kFailed | static_cast<std::uint32_t>(Fault::bad_length)}, 1};
  EXPECT_EQ(units_needed(first), units_of(sizeof(Header)));
}

}  // namespace
}  // namespace feedrate
