// The experiment in hopper_products/ on a real GPU. The experiment verifies its own products.
#include <gtest/gtest.h>

#include <cstdio>
#include "common/device/device.hpp"
#include "tests/cli/feedrate_process.hpp"

namespace feedrate {
namespace {

TEST(HopperProductsOnGpu, AreCorrectOnComputeCapability90AndSkippedElsewhere) {
  if (const auto reason = cuda_unavailable(); !reason.empty()) GTEST_SKIP() << reason;
  for (const char* cache : {"warm", "cold"}) {
    const std::string command = cli_test::with_additions() +
                                " run --experiment hopper-products --device cuda --seconds 0.2 --floor-rounds 1 --json"
                                " --keep-disturbed --cache " +
                                cache;
    FILE* const process = popen(command.c_str(), "r");
    std::string out;
    for (int byte = std::fgetc(process); byte != EOF; byte = std::fgetc(process)) out += static_cast<char>(byte);
    ASSERT_EQ(pclose(process), 0) << out;
    out.erase(out.find_last_not_of('\n') + 1);
    const Json row = Json::parse(out.substr(out.rfind('\n') + 1));
    if (describe_device("cuda").capability != 90) {
      EXPECT_EQ(row["status"], "skipped");
      continue;
    }
    EXPECT_EQ(row["status"], "ok") << row["reason"];
    EXPECT_EQ(row["details"]["compiled"]["capability"], 90);
    EXPECT_EQ(row["details"]["compiled"]["local_bytes"], 0) << "registers were spilled";
    EXPECT_LT(row["bounds"]["products_per_second"]["ratio"], 1);
  }
}

}  // namespace
}  // namespace feedrate
