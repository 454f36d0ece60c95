#include "experiments/floors/host_memory.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>

namespace feedrate {
namespace {

/// The best of several readings: a machine that others use makes one slow now and then.
std::map<std::string, double> best_readings() {
  FloorList list;
  for (int round = 0; round < 5; ++round) {
    list.begin_round();
    add_host_memory_floors(list);
  }
  std::map<std::string, double> best;
  for (const Floor& floor : list.floors()) best[floor.name] = floor.greatest();
  return best;
}

TEST(HostMemory, FloorsAreInTheOrderThatMemoriesAre) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer's own memory is what would be measured";
#endif
  auto floors = best_readings();
  EXPECT_EQ(floors.size(), 8u);
  for (const auto& [name, value] : floors) EXPECT_GT(value, 1e8) << name;
  EXPECT_GT(floors["host_cache_read_bytes_per_second"], floors["host_thread_read_bytes_per_second"]);
}

// A floor that says a tenth of what a plain loop does is none.
TEST(HostMemory, APlainLoopIsWithinAFactorOfTheFloor) {
  std::vector<std::byte> memory(64 << 20);
  double plain = 0;
  for (int i = 0; i < 5; ++i) {
    plain = std::max(plain, static_cast<double>(memory.size()) * per_second(0.02, [&] {
                              std::memset(memory.data(), 3, memory.size());
                              asm volatile("" : : "r"(memory.data()) : "memory");
                            }));
  }
  const double floor = best_readings()["host_thread_write_bytes_per_second"];
  EXPECT_GT(floor, plain / 4);
  EXPECT_LT(floor, plain * 4);
}

}  // namespace
}  // namespace feedrate
