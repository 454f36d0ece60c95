#include "experiments/floors/host_memory.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <map>

namespace feedrate {
namespace {

TEST(HostMemory, FloorsAreInTheOrderThatMemoriesAre) {
  FloorList list;
  add_host_memory_floors(list);
  std::map<std::string, double> floors;
  for (const Floor& floor : list.floors()) floors[floor.name] = floor.median();
  EXPECT_EQ(floors.size(), 8u);
  for (const auto& [name, value] : floors) EXPECT_GT(value, 1e8) << name;
  EXPECT_GT(floors["host_cache_read_bytes_per_second"], floors["host_thread_read_bytes_per_second"]);
}

// A floor that says a tenth of what a plain loop does is none.
TEST(HostMemory, NoPlainLoopIsMuchFasterThanTheFloor) {
  FloorList list;
  add_host_memory_floors(list);
  std::vector<std::byte> memory(64 << 20);
  const double plain = static_cast<double>(memory.size()) * per_second(0.05, [&] {
                         std::memset(memory.data(), 3, memory.size());
                         asm volatile("" : : "r"(memory.data()) : "memory");
                       });
  for (const Floor& floor : list.floors()) {
    if (floor.name == "host_thread_write_bytes_per_second") {
      EXPECT_GT(floor.median(), plain / 4);
      EXPECT_LT(floor.median(), plain * 4);
    }
  }
}

}  // namespace
}  // namespace feedrate
