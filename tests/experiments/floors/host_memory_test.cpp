#include "experiments/floors/host_memory.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>

namespace feedrate {
namespace {

// Other work makes a reading slower, never faster: the best of enough readings are in the order of the memories.
TEST(HostMemory, FloorsAreInTheOrderThatMemoriesAre) {
  std::map<std::string, double> best;
  const auto in_order = [&] {
#ifdef __SANITIZE_THREAD__  // whose own memory is what would be measured
    return !best.empty();
#else
    return best["host_cache_write_bytes_per_second"] > best["host_thread_write_bytes_per_second"];
#endif
  };
  for (int round = 0; round < 50 && !in_order(); ++round) {
    FloorList list;
    add_host_memory_floors(list);
    for (const Floor& floor : list.floors()) best[floor.name] = std::max(best[floor.name], floor.median());
  }
  EXPECT_TRUE(in_order());
  EXPECT_EQ(best.size(), 8u);
  for (const auto& [name, value] : best) EXPECT_GT(value, 1e8) << name;
}

// A floor that says a tenth of what a plain loop does is none. Both are read in turn, so that a neighbour slows both.
TEST(HostMemory, APlainLoopIsWithinAFactorOfTheFloor) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer's own memory is what would be measured";
#endif
  std::vector<std::byte> memory(64 << 20);
  std::vector<double> ratios;
  for (int round = 0; round < 3; ++round) {
    const double plain = static_cast<double>(memory.size()) * per_second(0.02, [&] {
                           std::memset(memory.data(), 3, memory.size());
                           asm volatile("" : : "r"(memory.data()) : "memory");
                         });
    FloorList list;
    list.begin_round();
    add_host_memory_floors(list);
    for (const Floor& floor : list.floors()) {
      if (floor.name == "host_thread_write_bytes_per_second") ratios.push_back(floor.median() / plain);
    }
  }
  ASSERT_EQ(ratios.size(), 3u);
  std::sort(ratios.begin(), ratios.end());
  EXPECT_GT(ratios[1], 0.25);
  EXPECT_LT(ratios[1], 4);
}

}  // namespace
}  // namespace feedrate
