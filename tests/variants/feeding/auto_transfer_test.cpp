#include <gtest/gtest.h>

#include "kernels/workload.hpp"
#include "variants/feeding/transfer.hpp"

namespace feedrate::test {
namespace {

/// Limits as measured on one machine with a GPU. The tests use the CPU device, so that transfers that need the hardware
/// do not compete.
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

TEST_F(AutoTransfer, ChoosesFastestTransferFromLimits) {
  // For a lone message, launching a graph takes less time than launching a kernel, and nothing is copied.
  const Choices alone = chosen(64, 1, 1);
  EXPECT_EQ(alone.at("transfer"), "graph");
  EXPECT_EQ(alone.at("chain"), "mapped");
  Limits limits = kLimits;
  limits["graph_launch_sync_ns"] = 7600;  // now slower than a kernel launch
  EXPECT_EQ(chosen(64, 1, 1, limits)["transfer"], "mapped");
  EXPECT_FALSE(chosen(64, 1, 1, limits).contains("chain"));
  // For consecutive batches the limits would rank the graph first, but they do not include its full cost.
  limits = kLimits;
  limits["copy_engine_both_bytes_per_second"] = 20e9;
  EXPECT_NE(chosen(64 << 10, 1, 64, limits)["transfer"], "graph");
  // For consecutive small batches, one call per batch is the bound, so transfers that make fewer calls are faster.
  const std::string small = chosen(64, 16, 1024)["transfer"];
  EXPECT_TRUE(small == "batched_copy" || small == "gather") << small;
  // For large batches the bus is the bound, and copy engines use it faster than SMs do.
  const std::string large = chosen(1 << 20, 16, 256)["transfer"];
  EXPECT_TRUE(large == "pinned" || large == "batched_copy" || large == "graph") << large;
}

TEST_F(AutoTransfer, AccountsForEachCopyOfABatchedCall) {
  Limits limits = kLimits;
  limits["batched_copies_per_second"] = 1e6;
  EXPECT_EQ(chosen(64, 1, 1024, limits)["transfer"], "gather");
  EXPECT_EQ(chosen(64, 16, 1024, limits)["transfer"], "gather");
  EXPECT_NE(chosen(1 << 20, 16, 256, limits)["transfer"], "gather");
}

TEST_F(AutoTransfer, CoalescesMoreSmallBatchesThanLargeOnes) {
  const auto coalesced = [this](const char* transfer, std::size_t payload, std::size_t batch) {
    return chosen(payload, batch, 4096, kLimits, transfer)["coalesce"];
  };
  EXPECT_EQ(coalesced("gather", 64, 1), "64");
  EXPECT_EQ(coalesced("gather", 64, 256), "12");  // 20 KiB each
  EXPECT_EQ(coalesced("batched_copy", 64 << 10, 16), "8");
  EXPECT_EQ(coalesced("graph", 64, 1), "8");  // chains without a batch are launched as well
  EXPECT_EQ(chosen(64, 1, 1, kLimits, "graph")["coalesce"], "1") << "a lone message cannot be coalesced";
  EXPECT_EQ(chosen(64, 16, 4, kLimits, "gather")["coalesce"], "4");
}

TEST(TransferSearch, IncludesTheDefaultValueOfEachAxis) {
  for (const auto& [name, entry] : Transfers::instance().entries()) {
    const Values standard = values_on(entry.axes, {});
    for (const AxisValues& each : entry.search) {
      const auto own = standard.find(each.axis);
      if (own == standard.end()) continue;  // an axis shared by all transfers
      EXPECT_NE(std::ranges::find(each.values, text_of(own->second)), each.values.end()) << name << ": " << each.axis;
    }
  }
}

TEST_F(AutoTransfer, ReportsItsReason) {
  const std::string why = chosen(64, 1, 1)["transfer-why"];
  EXPECT_TRUE(why.starts_with("by the limits 6.90")) << why;
  for (const char* other : {"pinned", "graph 9", "mapped 8.70", "gather", "batched_copy"})
    EXPECT_NE(why.find(other), why.npos) << why;
}

TEST_F(AutoTransfer, CountsTheCopiesInsideAGraph) {
  // A graph saves as much of the launch time as an empty graph does, but it still contains the two copies.
  const std::string why = chosen(64, 1, 1)["transfer-why"];
  EXPECT_NE(why.find("graph 9.1"), why.npos) << why;
}

TEST_F(AutoTransfer, FallsBackToPinnedWithoutLimits) {
  EXPECT_EQ(chosen(64, 16, 1024, {})["transfer"], "pinned");
  EXPECT_EQ(chosen(64, 16, 1024, {})["transfer-why"], "no limits of a GPU were measured here");
}

}  // namespace
}  // namespace feedrate::test
