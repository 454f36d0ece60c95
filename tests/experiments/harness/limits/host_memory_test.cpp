#include "common/limits/device_limit.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "common/limits/limit_list.hpp"

namespace feedrate {
namespace {

/// One reading.
double read(const std::string& name) {
  const auto device = open_cpu_device();
  LimitProbe probe(*device);
  return DeviceLimits::instance().get("limit", name).measure(probe);
}

constexpr auto kCached = "host_cache_write_bytes_per_second", kThread = "host_thread_write_bytes_per_second";

// Other work makes a reading slower, never faster: the best of enough readings are in the order of the memories.
TEST(HostMemory, LimitsAreInTheOrderThatMemoriesAre) {
  std::map<std::string, double> best;
  const auto in_order = [&] {
#ifdef __SANITIZE_THREAD__  // whose own memory is what would be measured
    return !best.empty();
#else
    return best[kCached] > best[kThread];
#endif
  };
  for (int round = 0; round < 50 && !in_order(); ++round) {
    for (const auto& [name, limit] : DeviceLimits::instance().entries()) {
      const bool memory = name.starts_with("host_") && limit.quantity == Quantity::bytes_per_second;
      if (memory && (round == 0 || name == kCached || name == kThread)) best[name] = std::max(best[name], read(name));
    }
  }
  EXPECT_TRUE(in_order());
  EXPECT_EQ(best.size(), 9u);
  for (const auto& [name, value] : best) EXPECT_GT(value, 1e8) << name;
}

// A ceiling of a tenth of what a plain loop does is none. Both are read in turn, and their best compared, as
// above.
TEST(HostMemory, APlainLoopIsWithinAFactorOfTheCeiling) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer's own memory is what would be measured";
#endif
  double plain = 0, ceiling = 0;
  const auto alike = [&] { return ceiling > plain / 4 && ceiling < plain * 4; };
  for (int round = 0; round < 3 || (round < 50 && !alike()); ++round) {
    std::vector<std::byte> memory(64 << 20);  // anew, as the limit's is: the kernel may give larger pages next time
    plain = std::max(plain, static_cast<double>(memory.size()) * per_second(0.02, [&] {
                              std::memset(memory.data(), 3, memory.size());
                              asm volatile("" : : "r"(memory.data()) : "memory");
                            }));
    ceiling = std::max(ceiling, read(kThread));
  }
  EXPECT_TRUE(alike()) << ceiling << " bytes/s, a plain loop " << plain;
}

}  // namespace
}  // namespace feedrate
