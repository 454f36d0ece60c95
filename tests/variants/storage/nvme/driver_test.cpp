#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>

#include "common/clock.hpp"
#include "common/error.hpp"
#include "common/threads/threads.hpp"
#include "tests/variants/storage/nvme/software_controller.hpp"
#include "variants/storage/nvme/controller.hpp"
#include "variants/storage/nvme/transfers.hpp"

namespace feedrate::storage::nvme {
namespace {

using test::Faults;
using test::SoftwareController;

constexpr std::uint64_t kPatience = 120'000'000'000;  // ns; the machine may be busy

/// A controller over a software controller that runs in a thread.
struct Opened {
  explicit Opened(Faults faults = {}, ControllerSettings settings = {.command_timeout_ns = kPatience}) {
    auto made = std::make_unique<SoftwareController>(faults);
    device = made.get();
    device->run();
    controller = std::make_unique<Controller>(std::move(made), settings);
  }
  std::unique_ptr<Controller> controller;
  SoftwareController* device;
};

/// A port to a software controller that outlives it.
struct Borrowed final : Port {
  explicit Borrowed(SoftwareController& to) : device(to) {}
  const std::string& name() const override { return device.name(); }
  std::span<std::byte> registers() override { return device.registers(); }
  void set_bus_master(bool on) override { device.set_bus_master(on); }
  std::uint64_t map(std::byte* data, std::size_t bytes) override { return device.map(data, bytes); }
  void unmap(std::uint64_t bus, std::size_t bytes) noexcept override { device.unmap(bus, bytes); }
  SoftwareController& device;
};

std::string failure_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Failure& failure) {
    return failure.what();
  }
  return "no failure";
}
bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// Runs commands on a queue pair until all have ended; returns the statuses by tag.
std::map<std::uint64_t, Status> drain(QueuePair& queue) {
  std::map<std::uint64_t, Status> ended;
  Backoff backoff;
  while (queue.in_flight() != 0) {
    queue.flush();
    queue.poll([&](const Ended& end) {
      EXPECT_TRUE(ended.emplace(end.tag, end.status).second) << "tag " << end.tag << " has ended twice";
    });
    queue.check_timeouts(now_ns(), kPatience);
    backoff.wait();
  }
  return ended;
}

TEST(NvmeController, IdentifiesItsNamespaces) {
  Opened opened;
  EXPECT_EQ(opened.controller->info().model, "Software controller");
  EXPECT_EQ(opened.controller->info().max_transfer, kPage << SoftwareController::kTransferLog);
  ASSERT_EQ(opened.controller->namespaces().size(), 1u);
  EXPECT_EQ(opened.controller->name_space(1).blocks, SoftwareController::kBlocks);
  EXPECT_EQ(failure_of([&] { opened.controller->name_space(2); }), "software: it has no active namespace 2");
  EXPECT_EQ(opened.controller->max_queue_pairs(), 3u) << "the smaller number of granted queues";
}

/// Random transfers on two queue pairs, small rings that wrap often, completions in random order.
TEST(NvmeController, MovesDataWhileCompletionsAreReordered) {
  Opened opened;
  Controller& controller = *opened.controller;
  std::vector<std::byte> model(opened.device->contents().size());
  {
    Transfers one(controller, controller.name_space(1), 5, 1 << 20),
        two(controller, controller.name_space(1), 16, 1 << 20);
    Transfers* const pairs[] = {&one, &two};
    EXPECT_EQ(one.max_bytes(), kPage << SoftwareController::kTransferLog);
    const std::size_t slot = one.max_bytes() + 2 * kPage;
    DmaMemory memory(controller.port(), 2 * slot);
    std::mt19937_64 random(7);
    for (int round = 0; round < 1500; ++round) {
      // A write on one queue pair and a read of other blocks on the other one, in flight together.
      const bool swap = random() % 2 == 0;
      const std::uint32_t most = static_cast<std::uint32_t>(one.max_bytes() / 512);
      const std::uint32_t count = 1 + static_cast<std::uint32_t>(random() % most);
      const std::uint64_t half = SoftwareController::kBlocks / 2, from = random() % (half - count),
                          to = half + random() % (half - count);
      const std::size_t shift = 4 * (random() % (kPage / 4)), bytes = count * 512;
      std::byte *const out = memory.data() + shift, *const in = memory.data() + slot + shift;
      for (std::size_t i = 0; i < bytes; ++i) out[i] = static_cast<std::byte>(random());
      std::fill_n(in, bytes, std::byte{0xEE});
      const std::uint64_t write_at = swap ? from : to, read_at = swap ? to : from;
      ASSERT_TRUE(pairs[swap]->submit(IoOpcode::write, write_at, count, memory.bus() + shift, 1, now_ns()));
      ASSERT_TRUE(pairs[!swap]->submit(IoOpcode::read, read_at, count, memory.bus() + slot + shift, 2, now_ns()));
      for (Transfers* const pair : pairs) pair->queue().flush();
      for (Transfers* const pair : pairs) {
        for (const auto& [tag, status] : drain(pair->queue())) ASSERT_TRUE(status.ok()) << tag;
      }
      std::copy_n(out, bytes, model.begin() + static_cast<std::ptrdiff_t>(write_at * 512));
      ASSERT_TRUE(std::equal(in, in + bytes, model.begin() + static_cast<std::ptrdiff_t>(read_at * 512))) << round;
    }
    opened.device->stop();
    EXPECT_TRUE(opened.device->contents() == model);
    opened.device->run();
  }
  EXPECT_EQ(opened.device->live_queues(), 0u);
  EXPECT_EQ(opened.device->bad_accesses(), 0u);
}

TEST(NvmeController, CommandsInFlightHaveTheirOwnLists) {
  Opened opened;
  Transfers transfers(*opened.controller, opened.controller->name_space(1), 8, 1 << 20);
  constexpr std::size_t kBytes = 32768, kCommands = 7;
  const DmaMemory memory(opened.controller->port(), kCommands * kBytes);
  std::mt19937_64 random(3);
  for (std::size_t i = 0; i < memory.size(); ++i) memory.data()[i] = static_cast<std::byte>(random());
  opened.device->stop();  // so that all commands are in flight together
  for (std::uint64_t i = 0; i < kCommands; ++i) {
    ASSERT_TRUE(transfers.submit(IoOpcode::write, i * 64, 64, memory.bus() + i * kBytes, i, now_ns()));
  }
  opened.device->run();
  EXPECT_EQ(drain(transfers.queue()).size(), kCommands);
  opened.device->stop();
  EXPECT_TRUE(std::equal(memory.data(), memory.data() + memory.size(), opened.device->contents().begin()));
  opened.device->run();
}

TEST(NvmeController, KeepsTheQueueFull) {
  Opened opened;
  Transfers transfers(*opened.controller, opened.controller->name_space(1), 16, 4096);
  const DmaMemory memory(opened.controller->port(), kPage);
  std::vector<unsigned> seen(4000);
  std::uint64_t next = 0, ended = 0;
  Backoff backoff;
  while (ended < seen.size()) {
    while (next < seen.size() && transfers.submit(IoOpcode::read, next % 4096, 1, memory.bus(), next, now_ns())) ++next;
    EXPECT_LE(transfers.queue().in_flight(), 15u);
    transfers.queue().flush();
    const std::uint32_t count = transfers.queue().poll([&](const Ended& end) { ++seen.at(end.tag); });
    ended += count;
    if (count == 0) backoff.wait();
    transfers.queue().check_timeouts(now_ns(), kPatience);
  }
  EXPECT_TRUE(std::ranges::all_of(seen, [](unsigned times) { return times == 1; }));
}

TEST(NvmeController, ReportsTheStatusOfACommand) {
  Opened opened({.fail_io = 2});
  Transfers transfers(*opened.controller, opened.controller->name_space(1), 8, 4096);
  const DmaMemory memory(opened.controller->port(), kPage);
  const auto status_of = [&](std::uint64_t lba) {
    transfers.submit(IoOpcode::read, lba, 1, memory.bus(), 5, now_ns());
    return type_and_code(drain(transfers.queue()).at(5));
  };
  EXPECT_EQ(status_of(0), 0u);
  EXPECT_EQ(status_of(0), kUnrecoveredReadError);
  EXPECT_EQ(status_of(0), 0u);
  EXPECT_EQ(status_of(SoftwareController::kBlocks), kLbaOutOfRange);
}

TEST(NvmeController, TimesOutOnALostCommand) {
  Opened opened({.lose_io = 3});
  Transfers transfers(*opened.controller, opened.controller->name_space(1), 8, 4096);
  QueuePair& queue = transfers.queue();
  const DmaMemory memory(opened.controller->port(), kPage);
  constexpr std::uint64_t kSubmitted = 1'000'000;
  for (std::uint64_t i = 0; i < 5; ++i) transfers.submit(IoOpcode::read, i, 1, memory.bus(), i, kSubmitted);
  queue.flush();
  std::uint32_t ended = 0;
  const std::uint64_t deadline = now_ns() + kPatience;
  while (ended < 4 && now_ns() < deadline) ended += queue.poll([](const Ended&) {});
  ASSERT_EQ(ended, 4u);
  EXPECT_NO_THROW(queue.check_timeouts(kSubmitted + 500, 500));
  EXPECT_TRUE(contains(failure_of([&] { queue.check_timeouts(kSubmitted + 501, 500); }),
                       "(opcode 0x02) of queue 1 has not ended"));
  EXPECT_EQ(queue.outstanding().size(), 1u);
}

TEST(NvmeController, RejectsAnInvalidCompletion) {
  Opened opened({.wrong_id = 1});
  Transfers transfers(*opened.controller, opened.controller->name_space(1), 8, 4096);
  const DmaMemory memory(opened.controller->port(), kPage);
  transfers.submit(IoOpcode::read, 0, 1, memory.bus(), 0, now_ns());
  EXPECT_TRUE(contains(failure_of([&] { drain(transfers.queue()); }), "is not in flight"));
}

TEST(NvmeController, ResetAccountsForCommandsInFlight) {
  Opened opened;
  Controller& controller = *opened.controller;
  const DmaMemory memory(controller.port(), kPage);
  auto transfers = std::make_unique<Transfers>(controller, controller.name_space(1), 16, 4096);
  opened.device->stop();
  for (std::uint64_t i = 0; i < 10; ++i) transfers->submit(IoOpcode::read, i, 1, memory.bus(), 100 + i, now_ns());
  transfers->queue().flush();
  opened.device->run();
  controller.reset();
  std::vector<std::uint64_t> tags = transfers->queue().outstanding();
  std::ranges::sort(tags);
  EXPECT_EQ(tags, (std::vector<std::uint64_t>{100, 101, 102, 103, 104, 105, 106, 107, 108, 109}));
  transfers.reset();  // must not delete a queue pair created after the reset
  transfers = std::make_unique<Transfers>(controller, controller.name_space(1), 16, 4096);
  transfers->submit(IoOpcode::read, 0, 1, memory.bus(), 7, now_ns());
  EXPECT_TRUE(drain(transfers->queue()).at(7).ok());
  EXPECT_EQ(opened.device->live_queues(), 1u);
}

TEST(NvmeController, OldQueuesDoNotDeleteNewOnes) {
  Opened opened;
  auto old = std::make_unique<IoQueues>(*opened.controller, 4);
  opened.controller->reset();
  IoQueues fresh(*opened.controller, 4);
  EXPECT_EQ(old->id().number, fresh.id().number);
  old.reset();
  EXPECT_EQ(opened.device->live_queues(), 1u);
}

TEST(NvmeController, LimitsQueues) {
  Opened opened;
  Controller& controller = *opened.controller;
  EXPECT_TRUE(contains(failure_of([&] { IoQueues(controller, 17); }), "allowed: 2 to 16"));
  EXPECT_TRUE(contains(failure_of([&] { IoQueues(controller, 1); }), "allowed: 2 to 16"));
  const IoQueues one(controller, 2), two(controller, 2);
  auto three = std::make_unique<IoQueues>(controller, 2);
  EXPECT_TRUE(contains(failure_of([&] { IoQueues(controller, 2); }), "all of its 3 queue pairs are in use"));
  three.reset();
  EXPECT_NO_THROW(IoQueues(controller, 2));
}

TEST(NvmeController, ShutsDownInOrder) {
  Opened opened;
  IoQueues queues(*opened.controller, 4);
  opened.controller->shut_down();
  EXPECT_EQ(opened.device->shutdowns(), 1u);
  EXPECT_EQ(opened.device->read(Register::configuration) & kEnable, 0u);
  EXPECT_FALSE(opened.device->bus_master());
  opened.controller->shut_down();
  EXPECT_EQ(opened.device->shutdowns(), 1u) << "once";
  EXPECT_TRUE(contains(failure_of([&] { IoQueues(*opened.controller, 4); }), "is disabled")) << "until a reset";
  opened.controller->reset();
  EXPECT_NO_THROW(IoQueues(*opened.controller, 4));
}

TEST(NvmeController, UnmapsItsMemory) {
  SoftwareController device;
  device.run();
  {
    Controller controller(std::make_unique<Borrowed>(device));
    const Transfers transfers(controller, controller.name_space(1), 8, 4096);
    EXPECT_GT(device.mapped(), 5u);
  }
  EXPECT_EQ(device.mapped(), 0u);
  EXPECT_EQ(device.shutdowns(), 1u);
  EXPECT_EQ(device.bad_accesses(), 0u);
}

TEST(NvmeController, DisablesAfterALostAdminCommand) {
  SoftwareController device({.lose_admin = 1});
  device.run();
  const std::string text =
      failure_of([&] { Controller(std::make_unique<Borrowed>(device), {.command_timeout_ns = 50'000'000}); });
  EXPECT_TRUE(contains(text, "Set Features (number of queues)")) << text;
  EXPECT_TRUE(contains(text, "has not ended within 0.05 s")) << text;
  EXPECT_EQ(device.read(Register::configuration) & kEnable, 0u);
  EXPECT_FALSE(device.bus_master());
}

TEST(NvmeController, ReportsAControllerThatDoesNotStart) {
  EXPECT_TRUE(contains(failure_of([] { Opened({.never_ready = true}); }), "it has not become ready within 0.5 s"));
  EXPECT_TRUE(contains(failure_of([] { Opened({.fatal_when_enabled = true}); }), "fatal status (CSTS.CFS)"));
  EXPECT_TRUE(contains(failure_of([] { Opened({.block_log = 8}); }), "software: namespace 1: blocks of 2^8 bytes"));
}

TEST(NvmeController, DetectsAFatalStatus) {
  Opened opened({.fatal_after = 1});
  Transfers transfers(*opened.controller, opened.controller->name_space(1), 8, 4096);
  const DmaMemory memory(opened.controller->port(), kPage);
  EXPECT_NO_THROW(opened.controller->check_health());
  transfers.submit(IoOpcode::read, 0, 1, memory.bus(), 0, now_ns());
  drain(transfers.queue());
  EXPECT_TRUE(contains(failure_of([&] { opened.controller->check_health(); }), "fatal status"));
  opened.controller->reset();
  EXPECT_NO_THROW(opened.controller->check_health()) << "a reset ends it";
}

/// One step at a time, without threads: a queue pair alone, with hand-written completions.
class QueuePairByHand : public testing::Test {
 protected:
  static constexpr std::uint32_t kSize = 4;
  void complete(std::uint16_t id, std::uint16_t head, std::uint16_t number = 3, unsigned status = 0) {
    const Status given{static_cast<std::uint16_t>(status)};
    completions_[tail_] = {id * 10u, 0, completion_state(head, number, id, phase_, given).bits};
    if (++tail_ == kSize) {
      tail_ = 0;
      phase_ = !phase_;
    }
  }
  std::optional<std::uint16_t> submit(std::uint64_t tag, std::uint64_t now = 0) {
    std::optional<std::uint16_t> used;
    queue_.submit(tag, now, [&](std::uint16_t id) {
      used = id;
      return flush_command(id, 1);
    });
    return used;
  }
  std::array<Command, kSize> submissions_{};
  std::array<CompletionEntry, kSize> completions_{};
  std::uint32_t submission_doorbell_ = 0, completion_doorbell_ = 0, tail_ = 0;
  bool phase_ = true;
  QueuePair queue_{
      "hand", 3, {submissions_.data(), completions_.data(), kSize, &submission_doorbell_, &completion_doorbell_}};
};

TEST_F(QueuePairByHand, WrapsAndInvertsThePhase) {
  for (std::uint32_t lap = 0; lap < 50; ++lap) {
    const auto id = submit(lap);
    ASSERT_TRUE(id);
    EXPECT_EQ(submission_doorbell_, lap % kSize) << "not announced yet";
    queue_.flush();
    EXPECT_EQ(submission_doorbell_, (lap + 1) % kSize);
    EXPECT_EQ(queue_.poll([](const Ended&) {}), 0u) << "an old entry is not taken";
    complete(*id, static_cast<std::uint16_t>((lap + 1) % kSize));
    EXPECT_EQ(queue_.poll([&](const Ended& end) {
      EXPECT_EQ(end.tag, lap);
      EXPECT_EQ(end.result, *id * 10u);
    }),
              1u);
    EXPECT_EQ(completion_doorbell_, (lap + 1) % kSize);
  }
}
TEST_F(QueuePairByHand, KeepsOneEntryEmpty) {
  EXPECT_EQ(queue_.depth(), 3u);
  const std::uint16_t ids[] = {*submit(0), *submit(1), *submit(2)};
  EXPECT_FALSE(queue_.has_room());
  EXPECT_FALSE(submit(3));
  queue_.flush();
  complete(ids[2], 0);  // fetched none of the three before it posts: the entries remain in use
  EXPECT_EQ(queue_.poll([](const Ended&) {}), 1u);
  EXPECT_FALSE(submit(3)) << "an identifier is free, but no entry";
  complete(ids[0], 3);
  EXPECT_EQ(queue_.poll([](const Ended&) {}), 1u);
  EXPECT_TRUE(submit(3));
}
TEST_F(QueuePairByHand, RejectsImpossibleCompletions) {
  const auto rejected = [this] { return failure_of([this] { queue_.poll([](const Ended&) {}); }); };
  const std::uint16_t id = *submit(0);
  complete(id, 1);
  EXPECT_TRUE(contains(rejected(), "head 1 is past the submitted commands")) << "it was never announced";
  queue_.flush();
  complete(id, 2);
  EXPECT_TRUE(contains(rejected(), "head 2"));
  complete(id, 1, 4);
  EXPECT_TRUE(contains(rejected(), "it belongs to submission queue 4"));
  complete(7, 1);
  EXPECT_TRUE(contains(rejected(), "command 7 is not in flight"));
  complete(id, 1);
  EXPECT_EQ(rejected(), "no failure");
  complete(id, 1);
  EXPECT_TRUE(contains(rejected(), "is not in flight")) << "a second completion of the same command";
}
TEST_F(QueuePairByHand, ReportsStatusAndTimeouts) {
  const std::uint16_t slow = *submit(1, 100), failing = *submit(2, 200);
  queue_.flush();
  complete(failing, 2, 3, kLbaOutOfRange);
  queue_.poll([](const Ended& end) {
    EXPECT_EQ(end.tag, 2u);
    EXPECT_EQ(type_and_code(end.status), kLbaOutOfRange);
  });
  EXPECT_EQ(queue_.outstanding(), std::vector<std::uint64_t>{1});
  EXPECT_NO_THROW(queue_.check_timeouts(150, 50));
  EXPECT_NO_THROW(queue_.check_timeouts(50, 50)) << "submitted after `now`";
  EXPECT_THROW(queue_.check_timeouts(151, 50), Failure);
  complete(slow, 2);
  queue_.poll([](const Ended&) {});
  EXPECT_NO_THROW(queue_.check_timeouts(1'000'000, 50));
}

}  // namespace
}  // namespace feedrate::storage::nvme
