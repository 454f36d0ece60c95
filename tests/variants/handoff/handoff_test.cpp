#include "variants/handoff/handoff.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <cstring>

namespace feedrate::handoff {
namespace {

constexpr std::size_t kBytes = 5000;

/// Runs both sides of a way in one process, without Redis and without a store.
class Way : public testing::TestWithParam<std::string> {
 protected:
  Way() { setting_.bytes = kBytes; }
  const Entry& entry() const { return Ways::instance().get("--way", GetParam()); }
  void open(Giver& giver, Taker& taker, unsigned tensor) {
    const Ticket ticket = giver.ticket(tensor);
    taker.open(tensor, ticket.bytes, tensors::Descriptor(fcntl(ticket.descriptor, F_DUPFD_CLOEXEC, 0)));
  }
  std::vector<std::byte> taken(Taker& taker, unsigned tensor) {
    const auto stream = device_->stream();
    const std::byte* const at = taker.take(tensor, *stream);
    stream->synchronize();
    return {at, at + kBytes};
  }
  static std::vector<std::byte> filled(std::byte* place, int value) {
    std::memset(place, value, kBytes);
    return std::vector<std::byte>(kBytes, static_cast<std::byte>(value));
  }

  Setting setting_;
  const std::unique_ptr<Device> device_ = open_device("cpu");
};

TEST_P(Way, DeliversTheLatestOffer) {
  const auto giver = entry().giver({setting_, *device_});
  const auto taker = entry().taker({setting_, *device_});
  std::byte* const first = giver->create(0);
  std::byte* const second = giver->create(1);
  open(*giver, *taker, 0);
  open(*giver, *taker, 1);
  for (int round = 1; round < 4; ++round) {
    const auto wanted = filled(first, round), other = filled(second, 100 + round);
    giver->offer(0);
    giver->offer(1);
    EXPECT_EQ(taken(*taker, 0), wanted);
    EXPECT_EQ(taken(*taker, 1), other);
  }
  taker->close(0);
  giver->destroy(0);
  // A new tensor with the same number is a different tensor.
  const auto wanted = filled(giver->create(0), 77);
  open(*giver, *taker, 0);
  giver->offer(0);
  EXPECT_EQ(taken(*taker, 0), wanted);
  EXPECT_EQ(taken(*taker, 1), std::vector<std::byte>(kBytes, std::byte{103}));
}

TEST_P(Way, KeepsTheOldBytesUntilTheOfferIfItCopies) {
  const auto giver = entry().giver({setting_, *device_});
  const auto taker = entry().taker({setting_, *device_});
  std::byte* const place = giver->create(0);
  open(*giver, *taker, 0);
  const auto old = filled(place, 1);
  giver->offer(0);
  EXPECT_EQ(taken(*taker, 0), old);
  const auto fresh = filled(place, 2);
  EXPECT_EQ(taken(*taker, 0), entry().copies.moves_over_bus == 0 ? fresh : old);
}

INSTANTIATE_TEST_SUITE_P(OnCpu, Way, testing::Values("ipc_memfd", "shm_copy", "shm_pinned"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace feedrate::handoff
