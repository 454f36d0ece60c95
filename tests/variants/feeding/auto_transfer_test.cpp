#include <gtest/gtest.h>

#include "kernels/workload.hpp"
#include "variants/feeding/transfer.hpp"

namespace feedrate::test {
namespace {

/// Limits as one machine's GPU has them; on the CPU device, so that transfers which need the hardware do not compete.
const Limits kLimits{{"launch_per_second", 350e3},
                     {"launch_sync_ns", 7400},
                     {"graph_launch_sync_ns", 5600},
                     {"mapped_launch_sync_ns", 8700},
                     {"copy_launch_copy_ns", 10900},
                     {"copy_queued_ns", 2400},
                     {"copy_engine_both_bytes_per_second", 50e9},
                     {"sm_echo_bytes_per_second", 42e9},
                     {"graph_kernels_per_second", 1.4e6},
                     {"graph_chains_per_second", 280e3},
                     {"host_copy_bytes_per_second", 9e9}};

class AutoTransfer : public testing::Test {
 protected:
  Choices chosen(std::size_t payload, std::size_t batch, std::size_t window, const Limits& limits = kLimits,
                 const char* transfer = "auto") {
    Point point;
    point.transfer = transfer;
    point.payload = payload;
    point.batch = batch;
    point.window = window;
    const std::size_t stride = stride_of(payload);
    const auto& entry = Transfers::instance().get("--transfer", transfer);
    const auto made = entry.make({*device, *workload, batch, stride, stride, 32, {}, limits, &point});
    return made->choices();
  }
  std::unique_ptr<Device> device = open_cpu_device();
  std::unique_ptr<Workload> workload = Workloads::instance().get("--workload", "echo").make({});
};

TEST_F(AutoTransfer, TakesTheOneThatTheLimitsMakeFastest) {
  // Alone: a graph's launch takes less than a kernel's, and nothing is copied.
  const Choices alone = chosen(64, 1, 1);
  EXPECT_EQ(alone.at("transfer"), "graph");
  EXPECT_EQ(alone.at("chain"), "mapped");
  Limits limits = kLimits;
  limits["graph_launch_sync_ns"] = 7600;  // where it takes more
  EXPECT_EQ(chosen(64, 1, 1, limits)["transfer"], "mapped");
  EXPECT_FALSE(chosen(64, 1, 1, limits).contains("chain"));
  // In a row of batches the limits would put it first, but they do not know all that it costs.
  limits = kLimits;
  limits["copy_engine_both_bytes_per_second"] = 20e9;
  EXPECT_NE(chosen(64 << 10, 1, 64, limits)["transfer"], "graph");
  // One behind the other, a call for each bounds small batches: whoever makes one call for several is ahead.
  const std::string small = chosen(64, 16, 1024)["transfer"];
  EXPECT_TRUE(small == "batched_copy" || small == "gather") << small;
  // Of large ones the bus is the bound, and the copy engines are faster there than SMs.
  const std::string large = chosen(1 << 20, 16, 256)["transfer"];
  EXPECT_TRUE(large == "pinned" || large == "batched_copy" || large == "graph") << large;
}

TEST_F(AutoTransfer, KnowsThatACallOfManyCopiesMakesEachByItself) {
  Limits limits = kLimits;
  limits["batched_copies_per_second"] = 1e6;
  EXPECT_EQ(chosen(64, 1, 1024, limits)["transfer"], "gather");
  EXPECT_EQ(chosen(64, 16, 1024, limits)["transfer"], "gather");
  EXPECT_NE(chosen(1 << 20, 16, 256, limits)["transfer"], "gather");
}

TEST_F(AutoTransfer, PutsMoreSmallBatchesTogetherThanLargeOnes) {
  const auto together = [this](const char* transfer, std::size_t payload, std::size_t batch) {
    return chosen(payload, batch, 4096, kLimits, transfer)["coalesce"];
  };
  EXPECT_EQ(together("gather", 64, 1), "64");
  EXPECT_EQ(together("gather", 64, 256), "12");  // 20 KiB each
  EXPECT_EQ(together("batched_copy", 64 << 10, 16), "8");
  EXPECT_EQ(together("graph", 64, 1), "8");  // a chain without a batch is launched all the same
  EXPECT_EQ(chosen(64, 1, 1, kLimits, "graph")["coalesce"], "1") << "a lone message has no company";
  EXPECT_EQ(chosen(64, 16, 4, kLimits, "gather")["coalesce"], "4");
}

TEST(TransferSearch, HasTheStandardValueOfEachAxis) {
  for (const auto& [name, entry] : Transfers::instance().entries()) {
    const Values standard = values_on(entry.axes, {});
    for (const AxisValues& each : entry.search) {
      const auto own = standard.find(each.axis);
      if (own == standard.end()) continue;  // an axis that all share
      EXPECT_NE(std::ranges::find(each.values, text_of(own->second)), each.values.end()) << name << ": " << each.axis;
    }
  }
}

TEST_F(AutoTransfer, SaysWhy) {
  const std::string why = chosen(64, 1, 1)["transfer-why"];
  EXPECT_TRUE(why.starts_with("by the limits 6.90")) << why;
  for (const char* other : {"pinned", "graph 9", "mapped 8.70", "gather", "batched_copy"})
    EXPECT_NE(why.find(other), why.npos) << why;
}

TEST_F(AutoTransfer, OfACopyInAGraphKnowsThatItCopies) {
  // A graph saves of a launch what an empty one does; the two copies are in it all the same.
  const std::string why = chosen(64, 1, 1)["transfer-why"];
  EXPECT_NE(why.find("graph 9.1"), why.npos) << why;
}

TEST_F(AutoTransfer, IsPinnedIfNoLimitIsKnown) {
  EXPECT_EQ(chosen(64, 16, 1024, {})["transfer"], "pinned");
  EXPECT_EQ(chosen(64, 16, 1024, {})["transfer-why"], "no limits of a GPU were measured here");
}

}  // namespace
}  // namespace feedrate::test
