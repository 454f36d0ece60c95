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
  void open(Exporter& exporter, Importer& importer, unsigned tensor) {
    const Ticket ticket = exporter.ticket(tensor);
    importer.open(tensor, ticket.bytes, tensors::Descriptor(fcntl(ticket.descriptor, F_DUPFD_CLOEXEC, 0)));
  }
  std::vector<std::byte> taken(Importer& importer, unsigned tensor) {
    const auto stream = device_->stream();
    const std::byte* const at = importer.take(tensor, *stream);
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
  const auto exporter = entry().exporter({setting_, *device_});
  const auto importer = entry().importer({setting_, *device_});
  std::byte* const first = exporter->create(0);
  std::byte* const second = exporter->create(1);
  open(*exporter, *importer, 0);
  open(*exporter, *importer, 1);
  for (int round = 1; round < 4; ++round) {
    const auto wanted = filled(first, round), other = filled(second, 100 + round);
    exporter->offer(0);
    exporter->offer(1);
    EXPECT_EQ(taken(*importer, 0), wanted);
    EXPECT_EQ(taken(*importer, 1), other);
  }
  importer->close(0);
  exporter->destroy(0);
  // A new tensor with the same number is a different tensor.
  const auto wanted = filled(exporter->create(0), 77);
  open(*exporter, *importer, 0);
  exporter->offer(0);
  EXPECT_EQ(taken(*importer, 0), wanted);
  EXPECT_EQ(taken(*importer, 1), std::vector<std::byte>(kBytes, std::byte{103}));
}

TEST_P(Way, OnlyCopyingWaysKeepTheOldBytesUntilTheOffer) {
  const auto exporter = entry().exporter({setting_, *device_});
  const auto importer = entry().importer({setting_, *device_});
  std::byte* const place = exporter->create(0);
  open(*exporter, *importer, 0);
  const auto old = filled(place, 1);
  exporter->offer(0);
  EXPECT_EQ(taken(*importer, 0), old);
  const auto fresh = filled(place, 2);
  EXPECT_EQ(taken(*importer, 0), entry().copies.moves_over_bus == 0 ? fresh : old);
}

INSTANTIATE_TEST_SUITE_P(OnCpu, Way, testing::Values("ipc_memfd", "shm_copy", "shm_pinned"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace feedrate::handoff
