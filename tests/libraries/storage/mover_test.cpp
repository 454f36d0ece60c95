// The thread that moves data, with an engine and gates whose ends the test decides.
#include "libraries/storage/mover.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>

#include "common/error.hpp"

namespace feedrate::storage {
namespace {

/// What the engines of a test do.
struct Script {
  std::mutex mutex;
  std::vector<std::uint64_t> submitted;      // offsets
  std::map<std::uint64_t, Completion> ends;  // by offset; a request without an end stays in flight
  std::string failure;                       // of the next poll
  std::size_t most = 4;                      // requests in flight
  std::size_t made = 0;                      // engines
  std::function<void()> freeing = [] {};     // called by the destructor of an engine
};

class ScriptedEngine final : public Engine {
 public:
  explicit ScriptedEngine(Script& script) : script_(script) {}
  ~ScriptedEngine() override { script_.freeing(); }
  bool submit(const Request& request) override {
    const std::lock_guard lock(script_.mutex);
    if (flying_.size() == script_.most) return false;
    flying_.push_back(request);
    script_.submitted.push_back(request.offset);
    return true;
  }
  std::size_t poll(std::span<Completion> ended) override {
    const std::lock_guard lock(script_.mutex);
    if (!script_.failure.empty()) throw Failure(std::exchange(script_.failure, ""));
    std::size_t count = 0;
    std::erase_if(flying_, [&](const Request& request) {
      const auto end = script_.ends.find(request.offset);
      if (end == script_.ends.end() || count == ended.size()) return false;
      ended[count++] = {request.id, end->second.error, end->second.error != 0 ? 0 : end->second.bytes};
      return true;
    });
    return count;
  }

 private:
  Script& script_;
  std::vector<Request> flying_;
};

class TestGate final : public Gate {
 public:
  TestGate(std::atomic<bool>& reached, std::atomic<bool>& open) : reached_(reached), open_(open) {}
  ~TestGate() override { TestGate::open(); }
  bool reached() override { return reached_; }
  void open() override { open_ = true; }

 private:
  std::atomic<bool>&reached_, &open_;
};

class StorageMover : public testing::Test {
 protected:
  std::shared_ptr<Job> job(std::vector<std::uint64_t> offsets, std::unique_ptr<Gate> gate = nullptr) {
    std::vector<Extent> extents;
    for (const std::uint64_t offset : offsets) extents.push_back({offset, 10, &place_});
    const std::uint64_t begins[] = {0, 1000};
    auto made =
        std::make_shared<Job>(Operation::read, plan_of(std::move(extents), begins, {10, 0, 1}), std::move(gate));
    mover_->start(made);
    return made;
  }
  void end(std::uint64_t offset, Completion completion = {.bytes = 10}) {
    const std::lock_guard lock(script_.mutex);
    script_.ends[offset] = completion;
  }
  bool submitted(std::uint64_t offset) {
    const std::lock_guard lock(script_.mutex);
    return std::ranges::count(script_.submitted, offset) != 0;
  }
  template <class Condition>
  static void until(Condition condition) {
    while (!condition()) std::this_thread::yield();
  }
  /// Waits for a job; returns its failure's message, or "done".
  static std::string outcome(const Job& job) {
    try {
      job.wait([](auto& changed, auto& lock, const auto& done) { changed.wait(lock, done); });
    } catch (const StorageError& error) {
      return "storage: " + std::string(error.what());
    } catch (const Failure& failure) {
      return failure.what();
    }
    return "done";
  }

  std::byte place_{};
  Script script_;
  std::unique_ptr<Device> device_ = open_cpu_device();
  std::unique_ptr<Mover> mover_ = std::make_unique<Mover>(
      *device_,
      [this](Operation) {
        ++script_.made;
        return std::make_unique<ScriptedEngine>(script_);
      },
      [](const Job&, const storage::Run& run, const Completion& completion) {
        return JobFailure{std::to_string(run.offset), completion.error};
      });
};

TEST_F(StorageMover, JobEndsWithItsLastRun) {
  const auto one = job({0, 100}), other = job({200});
  end(200);
  EXPECT_EQ(outcome(*other), "done");
  end(0);
  EXPECT_FALSE(one->done());
  end(100);
  EXPECT_EQ(outcome(*one), "done");
  EXPECT_EQ(mover_->counts().requests, 3u);
  EXPECT_EQ(script_.made, 1u);
}

TEST_F(StorageMover, JobBehindItsGateDelaysNoOther) {
  std::atomic<bool> reached{false}, open{false};
  const auto gated = job({0}, std::make_unique<TestGate>(reached, open));
  const auto other = job({100});
  end(100);
  end(0);
  EXPECT_EQ(outcome(*other), "done");
  EXPECT_FALSE(submitted(0)) << "the gate has not been reached";
  EXPECT_FALSE(open);
  reached = true;
  EXPECT_EQ(outcome(*gated), "done");
  EXPECT_TRUE(open);
}

TEST_F(StorageMover, FailedJobOpensItsGateAndSubmitsNothingMore) {
  script_.most = 1;
  std::atomic<bool> reached{true}, open{false};
  end(0, {.error = EIO});
  const auto failed = job({0, 100, 200}, std::make_unique<TestGate>(reached, open));
  EXPECT_EQ(outcome(*failed), "storage: 0");
  EXPECT_TRUE(open);
  const auto next = job({300});
  end(300);
  EXPECT_EQ(outcome(*next), "done");
  EXPECT_FALSE(submitted(100) || submitted(200));
  EXPECT_EQ(mover_->counts().errors, 1u);
}

TEST_F(StorageMover, EarliestFailureIsReported) {
  const auto failed = job({0, 100, 200});
  until([&] { return submitted(200); });
  end(200, {.error = EIO});
  until([&] { return mover_->counts().errors == 1; });
  end(100, {.bytes = 9});
  end(0);
  EXPECT_EQ(outcome(*failed), "storage: 100");
}

TEST_F(StorageMover, FailedEngineFailsItsJobsAndIsReplaced) {
  const auto one = job({0});
  until([&] { return submitted(0); });
  {
    const std::lock_guard lock(script_.mutex);
    script_.failure = "the device is gone";
  }
  EXPECT_EQ(outcome(*one), "the device is gone");
  end(100);
  EXPECT_EQ(outcome(*job({100})), "done");
  EXPECT_EQ(script_.made, 2u);
}

TEST_F(StorageMover, ManyWaitingJobsTakeTheirTurns) {
  script_.most = 1;
  std::vector<std::shared_ptr<Job>> jobs;
  for (std::uint64_t i = 0; i < 20'000; ++i) jobs.push_back(job({i % 90 * 10}));
  for (std::uint64_t offset = 0; offset < 900; offset += 10) end(offset);
  for (const auto& one : jobs) EXPECT_EQ(outcome(*one), "done");
}

TEST_F(StorageMover, FailedEngineOpensGatesBeforeItIsFreed) {
  std::atomic<bool> reached{true}, open{false};
  const auto one = job({0}, std::make_unique<TestGate>(reached, open));
  until([&] { return submitted(0); });
  {
    const std::lock_guard lock(script_.mutex);
    script_.failure = "the device is gone";
    script_.freeing = [&open] { EXPECT_TRUE(open) << "freeing memory waits for the stream"; };
  }
  EXPECT_EQ(outcome(*one), "the device is gone");
}

TEST_F(StorageMover, ClosingFailsWhatHasNotBegun) {
  std::atomic<bool> reached{false}, open{false};
  const auto begun = job({0}), gated = job({100}, std::make_unique<TestGate>(reached, open));
  until([&] { return submitted(0); });
  std::jthread closing([&] { mover_.reset(); });
  EXPECT_EQ(outcome(*gated), "the source was closed");
  EXPECT_TRUE(open) << "a stream waits forever";
  end(0);
  EXPECT_EQ(outcome(*begun), "done");
}

}  // namespace
}  // namespace feedrate::storage
