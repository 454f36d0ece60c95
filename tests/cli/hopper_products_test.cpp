#include "tests/cli/feedrate_process.hpp"

/// The experiment in tests/example/hopper_products: a kernel for compute capability 9.0 in a single folder.
namespace feedrate::cli_test {
namespace {

struct HopperProductsTest : ::testing::Test {
  Json run(const std::string& device, const Words& more) {
    Words words{"run", "--experiment", "hopper-products", "--device", device, "--json", "--seconds", "0.1"};
    words.insert(words.end(), more.begin(), more.end());
    const Outcome outcome = place_.run(words);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return rows_of(outcome.out).back();
  }
  Workplace place_{with_additions()};
};

TEST_F(HopperProductsTest, EveryProductIsVerified) {
  for (const char* cache : {"warm", "cold"}) {
    const Json row = run("cpu", {"--products", "16", "--cache", cache});
    ASSERT_NE(row["status"], "failed") << row["reason"];
    EXPECT_GE(row["details"]["samples"]["count"], 20) << row;
    EXPECT_GT(row["figures"]["products_per_second"], 0);
  }
}

}  // namespace
}  // namespace feedrate::cli_test
