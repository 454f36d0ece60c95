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
  for (int round = 0; round < 5; ++round) {
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
  const double floor = readings()["host_thread_write_bytes_per_second"];
  EXPECT_GT(floor, plain / 4);
  EXPECT_LT(floor, plain * 4);
}

}  // namespace
}  // namespace feedrate
