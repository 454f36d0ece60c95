#include "common/limits/device_limit.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "common/limits/limit_list.hpp"

namespace feedrate {
namespace {

/// One reading of a limit.
double reading_of(const std::string& name) {
  const auto device = open_cpu_device();
  LimitProbe probe(*device);
  return DeviceLimits::instance().get("limit", name).measure(probe);
}

constexpr auto kCached = "host_cache_write_bytes_per_second", kThread = "host_thread_write_bytes_per_second";

// Other work makes a reading slower, never faster, so the best of enough readings follow the memory hierarchy.
TEST(HostMemory, LimitsFollowTheMemoryHierarchy) {
  std::map<std::string, double> best;
  const auto in_order = [&] {
#ifdef __SANITIZE_THREAD__  // this would measure the sanitizer's shadow memory instead
    return !best.empty();
#else
    return best[kCached] > best[kThread];
#endif
  };
  for (int round = 0; round < 50 && !in_order(); ++round) {
    for (const auto& [name, limit] : DeviceLimits::instance().entries()) {
      const bool memory = name.starts_with("host_") && limit.quantity == Quantity::bytes_per_second;
      if (memory && (round == 0 || name == kCached || name == kThread))
        best[name] = std::max(best[name], reading_of(name));
    }
  }
  EXPECT_TRUE(in_order());
  EXPECT_EQ(best.size(), 9u);
  for (const auto& [name, value] : best) EXPECT_GT(value, 1e8) << name;
}

// A ceiling at a tenth of a plain loop's rate would be wrong. Both are read in turn, and their best readings are
// compared as above.
TEST(HostMemory, PlainLoopIsWithinAFactorOfFourOfTheCeiling) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "this would measure ThreadSanitizer's shadow memory instead";
#endif
  double plain = 0, ceiling = 0;
  const auto alike = [&] { return ceiling > plain / 4 && ceiling < plain * 4; };
  for (int round = 0; round < 3 || (round < 50 && !alike()); ++round) {
    // Memory is allocated in every round, as for the limit, because the kernel may provide larger pages next time.
    std::vector<std::byte> memory(64 << 20);
    plain = std::max(plain, static_cast<double>(memory.size()) * per_second(0.02, [&] {
                              std::memset(memory.data(), 3, memory.size());
                              asm volatile("" : : "r"(memory.data()) : "memory");
                            }));
    ceiling = std::max(ceiling, reading_of(kThread));
  }
  EXPECT_TRUE(alike()) << ceiling << " bytes/s, a plain loop " << plain;
}

}  // namespace
}  // namespace feedrate
