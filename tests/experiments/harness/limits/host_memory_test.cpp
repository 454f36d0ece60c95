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

// Other work makes a reading slower, never faster, so the best of enough readings follow the memory hierarchy. No rate
// is compared with a fixed value, which a busy machine would not reach.
TEST(HostMemory, LimitsFollowTheMemoryHierarchy) {
  std::map<std::string, double> best;
  for (const auto& [name, limit] : DeviceLimits::instance().entries()) {
    if (name.starts_with("host_") && limit.quantity == Quantity::bytes_per_second) best[name] = reading_of(name);
  }
  ASSERT_EQ(best.size(), 9u);
  // A loop that is not optimized reads at a tenth of the rate at which memset writes. A limit in other units would be
  // out of range.
  const auto in_range = [&](const std::string& name) {
    return name == kThread || (name == kCached ? best[kCached] > best[kThread] : best[name] > best[kThread] / 100);
  };
  for (auto& [name, value] : best) {
#ifdef __SANITIZE_THREAD__  // this would measure the sanitizer's shadow memory instead
    EXPECT_GT(value, 0) << name;
#else
    for (int round = 0; round < 50 && !in_range(name); ++round) value = std::max(value, reading_of(name));
    EXPECT_TRUE(in_range(name)) << name << ": " << value << " bytes/s, one thread writes " << best[kThread];
#endif
  }
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
