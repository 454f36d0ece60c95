#include "experiments/floors/host_memory.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>

namespace feedrate {
namespace {

/// The medians of several readings: a machine that others use makes one slow now and then.
std::map<std::string, double> readings() {
  FloorList list;
  for (int round = 0; round < 3; ++round) {
    list.begin_round();
    add_host_memory_floors(list);
  }
  std::map<std::string, double> medians;
  for (const Floor& floor : list.floors()) medians[floor.name] = floor.median();
  return medians;
}

TEST(HostMemory, FloorsAreInTheOrderThatMemoriesAre) {
  auto floors = readings();
  EXPECT_EQ(floors.size(), 8u);
  for (const auto& [name, value] : floors) EXPECT_GT(value, 1e8) << name;
#ifndef __SANITIZE_THREAD__  // whose own memory is what would be measured
  EXPECT_GT(floors["host_cache_read_bytes_per_second"], floors["host_thread_read_bytes_per_second"]);
#endif
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
