#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <map>
#include <memory>
#include <random>

#include "common/clock.hpp"
#include "common/error.hpp"
#include "common/threads/threads.hpp"
#include "tests/support/storage_files.hpp"
#include "variants/storage/engine.hpp"
#include "variants/storage/nvme/shared_controller.hpp"

namespace feedrate {
namespace {

using storage::nvme::open_controller;

constexpr std::uint64_t kContentKey = 41;
constexpr std::size_t kUserBlock = std::size_t{6} << 20;  // several commands per request
constexpr std::size_t kUserBlocks = 8, kUserDepth = 3;

/// The engine nvme_user on a device: FEEDRATE_NVME_DEVICE names a controller bound to vfio-pci, whose contents are
/// overwritten. tests/trials/nvme/run_in_qemu.sh runs these tests on QEMU's controller.
class NvmeUser : public testing::Test {
 protected:
  void SetUp() override {
    const char* const address = std::getenv("FEEDRATE_NVME_DEVICE");
    if (address == nullptr) GTEST_SKIP() << "FEEDRATE_NVME_DEVICE does not name a device";
    ASSERT_EQ(entry_.unavailable(), "");
    const auto controller = open_controller(address);
    files_ = {{address, controller->name_space(1).bytes()}};
    ASSERT_GE(files_[0].bytes, kUserBlocks * kUserBlock);
    memory_ = device_->allocate_device(kUserBlocks * kUserBlock);
  }
  std::unique_ptr<storage::Engine> open(storage::Operation operation) {
    return entry_.make({{.files = files_,
                         .device = *device_,
                         .operation = operation,
                         .direct = true,
                         .block = kUserBlock,
                         .depth = kUserDepth}});
  }
  void fill(std::uint64_t key) {
    const Buffer host = device_->allocate_host(kUserBlock, HostMemory::pinned);
    const auto stream = device_->stream();
    for (std::size_t i = 0; i < kUserBlocks; ++i) {
      storage::fill_content(host.data(), kUserBlock, key, i * kUserBlock);
      stream->copy_to_device(memory_.data() + i * kUserBlock, host.data(), kUserBlock);
      stream->synchronize();
    }
  }
  storage::Request block(std::size_t i) const {
    return {i, 0, i * kUserBlock, kUserBlock, memory_.data() + i * kUserBlock};
  }
  static std::map<std::uint64_t, storage::Completion> run(storage::Engine& engine,
                                                          std::span<const storage::Request> requests) {
    std::map<std::uint64_t, storage::Completion> all;
    std::size_t next = 0;
    Backoff backoff;
    const std::uint64_t deadline = now_ns() + 120'000'000'000;
    while (all.size() < requests.size() && now_ns() < deadline) {
      while (next < requests.size() && engine.submit(requests[next])) ++next;
      engine.flush();
      std::array<storage::Completion, 4> ended;
      const std::size_t count = engine.poll(ended);
      for (std::size_t i = 0; i < count; ++i) EXPECT_TRUE(all.emplace(ended[i].id, ended[i]).second);
      if (count == 0) backoff.wait();
    }
    EXPECT_EQ(all.size(), requests.size()) << "every request ends";
    return all;
  }
  std::vector<storage::Request> every_block() const {
    std::vector<storage::Request> requests;
    for (std::size_t i = 0; i < kUserBlocks; ++i) requests.push_back(block(i));
    std::shuffle(requests.begin(), requests.end(), std::mt19937_64(3));
    return requests;
  }
  void expect_success(const std::map<std::uint64_t, storage::Completion>& ended) {
    for (const auto& [id, end] : ended) {
      EXPECT_EQ(end.error, 0) << id;
      EXPECT_EQ(end.bytes, kUserBlock) << id;
    }
  }

  const storage::EngineEntry& entry_ = storage::Engines::instance().get("", "nvme_user");
  std::unique_ptr<Device> device_ = open_cpu_device();
  std::vector<storage::File> files_;
  Buffer memory_;
};

TEST_F(NvmeUser, ReadsWhatItHasWritten) {
  for (const std::uint64_t key : {kContentKey, kContentKey + 1}) {  // so that older contents cannot pass
    fill(key);
    expect_success(run(*open(storage::Operation::write), every_block()));
    fill(~key);
    const auto engine = open(storage::Operation::read);
    expect_success(run(*engine, every_block()));
    for (std::size_t i = 0; i < kUserBlocks; ++i) {
      EXPECT_EQ(test::wrong_words(*device_, memory_.data() + i * kUserBlock, kUserBlock, key, i * kUserBlock), 0u) << i;
    }
    EXPECT_EQ(engine->path().at("model"), open_controller(files_[0].path)->info().model);
  }
}

TEST_F(NvmeUser, SeveralEnginesShareAController) {
  fill(kContentKey);
  expect_success(run(*open(storage::Operation::write), every_block()));
  const auto one = open(storage::Operation::read), two = open(storage::Operation::read);
  fill(~kContentKey);
  const storage::Request first[] = {block(0), block(1), block(2)}, second[] = {block(3), block(4)};
  expect_success(run(*one, first));
  expect_success(run(*two, second));
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(test::wrong_words(*device_, block(i).device, kUserBlock, kContentKey, i * kUserBlock), 0u) << i;
  }
}

TEST_F(NvmeUser, ReadsAfterItWasReopened) {
  fill(kContentKey);
  expect_success(run(*open(storage::Operation::write), every_block()));
  const auto engine = open(storage::Operation::read);
  for (int round = 0; round < 3; ++round) {
    fill(~kContentKey);
    expect_success(run(*engine, every_block()));
    EXPECT_EQ(test::wrong_words(*device_, memory_.data(), kUserBlock, kContentKey, 0), 0u);
    EXPECT_TRUE(engine->reopen());
  }
}

TEST_F(NvmeUser, ReportsTheEndOfTheNamespace) {
  const std::uint64_t end = files_[0].bytes;
  const auto engine = open(storage::Operation::read);
  const storage::Request requests[] = {{1, 0, end - 4096, 8192, memory_.data()},
                                       {2, 0, end, 4096, memory_.data()},
                                       {3, 0, 3, 4096, memory_.data()},
                                       {4, 0, 0, 1000, memory_.data()}};
  const auto ended = run(*engine, requests);
  EXPECT_EQ(ended.at(1).error, 0);
  EXPECT_EQ(ended.at(1).bytes, 4096u);
  EXPECT_EQ(ended.at(2).error, 0);
  EXPECT_EQ(ended.at(2).bytes, 0u);
  EXPECT_EQ(ended.at(3).error, EINVAL) << "not a multiple of the block size";
  EXPECT_EQ(ended.at(4).error, EINVAL);
}

TEST_F(NvmeUser, ClosesWhileRequestsAreInFlight) {
  for (int round = 0; round < 5; ++round) {
    const auto engine = open(storage::Operation::read);
    std::size_t taken = 0;
    while (taken <= kUserDepth && engine->submit(block(taken))) ++taken;
    EXPECT_EQ(taken, kUserDepth) << "no more requests than the depth are accepted";
    engine->flush();
  }
}

TEST_F(NvmeUser, ReportsAMissingDevice) {
  files_[0].path = "fffe:ff:1f.7";
  try {
    open(storage::Operation::read);
    FAIL() << "opened a device that does not exist";
  } catch (const Failure& failure) {
    EXPECT_NE(std::string(failure.what()).find("fffe:ff:1f.7: no such PCI device"), std::string::npos)
        << failure.what();
  }
}

TEST(NvmeUserEngine, NeedsDirect) {
  const auto& entry = storage::Engines::instance().get("", "nvme_user");
  EXPECT_TRUE(entry.own_storage);
  EXPECT_EQ(entry.why_unsupported({.direct = true}), "");
  EXPECT_NE(entry.why_unsupported({.direct = false}), "");
}

}  // namespace
}  // namespace feedrate
