// The choice of the memory kind, by the time that allocating and mapping take in two processes.
#include "libraries/tensors/store/choose_way.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>

#include "common/error.hpp"

namespace feedrate::tensors {
namespace {

using namespace std::chrono_literals;

/// A memfd that is slow to create or to map, or that fails when another process maps it.
class Slow final : public ChunkMemory {
 public:
  struct Times {
    std::chrono::milliseconds make{}, map{};
    bool breaks_when_mapped = false, dies_when_mapped = false;
  };
  explicit Slow(Times times) : times_(times) {}
  std::string kind() const override { return "slow"; }
  std::size_t granularity() const override { return memory_->granularity(); }
  std::unique_ptr<Chunk> make(std::size_t bytes) override {
    std::this_thread::sleep_for(times_.make);
    return memory_->make(bytes);
  }
  std::unique_ptr<Mapping> map(Descriptor descriptor, std::string_view handle, std::size_t bytes) override {
    EXPECT_NE(getpid(), maker_) << "only another process may map it";
    std::this_thread::sleep_for(times_.map);
    if (times_.breaks_when_mapped) throw Failure("no such handle");
    if (times_.dies_when_mapped) _exit(3);
    return memory_->map(std::move(descriptor), handle, bytes);
  }
  void copy(void* to, const void* from, std::size_t bytes) override { memory_->copy(to, from, bytes); }

 private:
  const Times times_;
  static inline const pid_t maker_ = getpid();
  std::unique_ptr<ChunkMemory> memory_ = memfd_memory();
};

Candidate candidate(const std::string& name, Slow::Times times) {
  return {name, [times] { return std::make_unique<Slow>(times); }};
}

TEST(ChooseWay, ChoosesTheLowestTotalTimeOfBothProcesses) {
  const auto costs = measure_ways({candidate("made slowly", {8ms, 0ms}), candidate("mapped slowly", {0ms, 8ms}),
                                   candidate("both a little", {2ms, 2ms})},
                                  1000);
  EXPECT_EQ(cheapest(costs)->name, "both a little");
  EXPECT_GE(costs[0].make, 8ms);
  EXPECT_GE(costs[1].map, 8ms);
  EXPECT_LT(costs[1].make, 8ms);
}

TEST(ChooseWay, UnusableWaysAreSkippedWithTheirReason) {
  const auto costs =
      measure_ways({candidate("breaks", {.breaks_when_mapped = true}), candidate("dies", {.dies_when_mapped = true}),
                    Candidate{"none", []() -> std::unique_ptr<ChunkMemory> { throw Failure("not here"); }},
                    candidate("slow", {5ms, 5ms})},
                   1000);
  EXPECT_EQ(cheapest(costs)->name, "slow");
  EXPECT_EQ(costs[0].fault, "no such handle");
  EXPECT_EQ(costs[1].fault, "the mapping process ended");
  EXPECT_EQ(costs[2].fault, "not here");
  EXPECT_EQ(cheapest({costs.begin(), costs.begin() + 3}), nullptr);
}

}  // namespace
}  // namespace feedrate::tensors
