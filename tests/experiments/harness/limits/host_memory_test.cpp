#include "experiments/harness/limits/host_memory.hpp"

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

// A floor that says a tenth of what a plain loop does is none. Both are read in turn, and their best compared, as
// above.
TEST(HostMemory, APlainLoopIsWithinAFactorOfTheFloor) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer's own memory is what would be measured";
#endif
  std::vector<std::byte> memory(64 << 20);
  double plain = 0, floor = 0;
  const auto alike = [&] { return floor > plain / 4 && floor < plain * 4; };
  for (int round = 0; round < 3 || (round < 50 && !alike()); ++round) {
    plain = std::max(plain, static_cast<double>(memory.size()) * per_second(0.02, [&] {
                              std::memset(memory.data(), 3, memory.size());
                              asm volatile("" : : "r"(memory.data()) : "memory");
                            }));
    FloorList list;
    add_host_memory_floors(list);
    for (const Floor& one : list.floors()) {
      if (one.name == "host_thread_write_bytes_per_second") floor = std::max(floor, one.median());
    }
  }
  EXPECT_TRUE(alike()) << floor << " bytes/s, a plain loop " << plain;
}

}  // namespace
}  // namespace feedrate
