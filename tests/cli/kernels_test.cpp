// The kernels experiment as users run it: by `feedrate`, which runs feedrate_full for names that it does not know.
#include <algorithm>

#include "tests/cli/feedrate_process.hpp"

namespace feedrate::cli_test {
namespace {

class KernelsCommand : public testing::Test {
 protected:
  int feedrate(const Words& words, const Environment& environment = {}) {
    const Outcome outcome = place_.run(words, environment);
    out_ = outcome.out;
    err_ = outcome.err;
    return outcome.code;
  }
  /// The row of one short run on the CPU device.
  Json measured(Words words) {
    words.insert(words.begin(), {"run", "--experiment", "kernels", "--device", "cpu", "--seconds", "0.02", "--warmup",
                                 "0.01", "--json", "--floor-rounds", "1", "--cache", "hot"});
    EXPECT_EQ(feedrate(words), 0) << err_;
    return measured_in(out_).at(0);
  }
  /// The same for a small product.
  Json product(Words words) {
    words.insert(words.end(), {"--m", "60", "--n", "70", "--k", "80"});
    return measured(std::move(words));
  }
  Workplace place_;
  std::string out_, err_;
};

TEST_F(KernelsCommand, RungIsCheckedAndTimed) {
  const Json row = product({"--rung", "cpu_packed"});
  EXPECT_EQ(row.at("status"), "ok") << row.at("reason");
  EXPECT_EQ(row.at("details").at("verified").at("elements"), 2048);
  EXPECT_GT(row.at("figures").at("operations_per_second"), 0);
  EXPECT_GE(row.at("details").at("samples").at("count"), 10);
  EXPECT_TRUE(row.at("bounds").contains("operations_per_second"));
}

TEST_F(KernelsCommand, EmptyProductMovesNothing) {
  const Json row = measured({"--rung", "cpu_naive", "--m", "0", "--n", "70", "--k", "80"});
  EXPECT_EQ(row.at("figures").at("operations_per_second"), 0);
  EXPECT_EQ(row.at("figures").at("bytes_per_second"), 0);
}

TEST_F(KernelsCommand, RungIsComparedWithAnotherOneInTurn) {
  const Json row = product({"--rung", "cpu_packed", "--against", "cpu_naive"});
  const Json& naive = row.at("details").at("peers").at("cpu_naive");
  EXPECT_EQ(naive.at("samples").at("count"), row.at("details").at("samples").at("count"));
  EXPECT_EQ(row.at("figures").at("share_of_best_peer"), naive.at("share"));
  EXPECT_FALSE(product({"--rung", "cpu_packed", "--against", "alone"}).at("details").contains("peers"));
}

TEST_F(KernelsCommand, UnusableLibrariesOfVariablesAreRejected) {
  EXPECT_EQ(feedrate({"kernels", "show", "matmul"}, {{"FEEDRATE_OPENBLAS", "/none.so"}}), 2);
  EXPECT_NE(err_.find("$FEEDRATE_OPENBLAS: invalid value '/none.so'; allowed: the shared library of"),
            std::string::npos)
      << err_;
  ASSERT_EQ(feedrate({"kernels", "show", "matmul"}), 0) << err_;
  if (out_.find("peer pytorch") == std::string::npos) GTEST_SKIP() << "this build has no peers for GPUs";
  EXPECT_EQ(feedrate({"kernels", "show", "matmul"}, {{"FEEDRATE_PEERS_PYTHON", "/none/python"}}), 2);
  EXPECT_NE(err_.find("$FEEDRATE_PEERS_PYTHON: invalid value '/none/python'; allowed: a Python with its shared"),
            std::string::npos)
      << err_;
}

TEST_F(KernelsCommand, LinearLayerIsMeasured) {
  const Json row = measured(
      {"--ladder", "linear", "--rung", "cpu_openmp", "--rows", "40", "--in-features", "24", "--out-features", "16"});
  EXPECT_EQ(row.at("params").at("pass"), "all");
}

TEST_F(KernelsCommand, RowsAppearInTheExplanation) {
  place_.write("s.json", R"({"experiment": "kernels", "run": {"seconds": 0.01, "repetitions": 2},
    "axes": {"rung": ["cpu_naive", "cpu_blocked"], "m": [9, 32], "n": 32, "k": 32, "cache": "hot"}})");
  ASSERT_EQ(feedrate({"sweep", "s.json", "--device", "cpu", "--out", "out", "--floor-rounds", "1"}), 0) << err_;
  ASSERT_EQ(feedrate({"kernels", "show", "matmul", "--rows", "out"}), 0) << err_;
  EXPECT_NE(out_.find("2 cpu_blocked (cpu)"), std::string::npos) << out_;
  EXPECT_NE(out_.find(" × cpu_naive"), std::string::npos) << out_;
  EXPECT_LT(out_.find("m=9"), out_.find("m=32")) << out_;
  EXPECT_EQ(feedrate({"kernels", "show", "linear", "--rows", "out"}), 2);
  EXPECT_NE(err_.find("--rows: invalid value 'out'; allowed: rows of the ladder linear"), std::string::npos) << err_;
  for (const char* damaged : {"[]", "{\"a\":", R"({"kind": "cell", "experiment": "kernels", "params": [1]})",
                              R"({"kind": "cell", "experiment": "kernels", "status": "ok", "figures": null,
                                  "params": {"ladder": "matmul", "rung": "cpu_naive"}})"}) {
    std::string line = damaged;
    std::ranges::replace(line, '\n', ' ');
    place_.write("rows.jsonl", line + "\n");
    EXPECT_EQ(feedrate({"kernels", "show", "matmul", "--rows", "rows.jsonl"}), 2) << damaged;
    EXPECT_NE(err_.find("rows.jsonl, line 1'; allowed: rows that `feedrate validate` accepts"), std::string::npos)
        << err_;
  }
}

TEST_F(KernelsCommand, ExplanationCountsTheRowsThatReportsCount) {
  const Json first = product({"--rung", "cpu_naive"});
  const auto row = [&](double rate, bool afresh, bool disturbed) {
    Json made = first;
    made["figures"]["operations_per_second"] = rate;
    if (afresh) made["afresh"] = {{"of", 2}};
    if (disturbed) made.update({{"status", "invalid"}, {"cause", "disturbed"}, {"reason", "made"}});
    return made.dump() + "\n";
  };
  const auto shown = [&](const std::string& rows) {
    place_.write("rows.jsonl", rows);
    EXPECT_EQ(feedrate({"kernels", "show", "matmul", "--rows", "rows.jsonl"}), 0) << err_;
    return out_;
  };
  const std::string chosen = row(9e9, false, false) + row(9e9, false, false);
  EXPECT_NE(shown(chosen + row(2e9, true, false) + row(2e9, true, false)).find("2 G"), std::string::npos) << out_;
  EXPECT_NE(out_.find("(n = 2;"), std::string::npos) << out_;
  EXPECT_NE(shown(chosen + row(5e9, false, true)).find("(n = 2;"), std::string::npos) << out_;
  EXPECT_NE(shown(row(5e9, false, true)).find("(n = 1, all disturbed;"), std::string::npos) << out_;
}

TEST_F(KernelsCommand, ImpossiblePointsNameTheReason) {
  const auto reason = [&](Words words) {
    Words all{"run", "--experiment", "kernels", "--device", "cpu"};
    all.insert(all.end(), words.begin(), words.end());
    EXPECT_EQ(feedrate(all), 2) << out_;
    return err_;
  };
  EXPECT_NE(reason({"--rung", "cpu_naive", "--dtype", "bf16"}).find("the CPU's rungs multiply fp32, not bf16"),
            std::string::npos)
      << err_;
  EXPECT_NE(reason({"--rung", "openblas", "--ladder", "linear"})
                .find("--rung openblas: ladder linear has no such rung in this build"),
            std::string::npos)
      << err_;
  EXPECT_NE(
      reason({"--rung", "cpu_naive", "--against", "cpu_naive"}).find("--against cpu_naive: it is the rung itself"),
      std::string::npos)
      << err_;
  EXPECT_NE(reason({"--rung", "cpu_naive", "--m", "1Mi", "--n", "1Mi"}).find("more than the"), std::string::npos)
      << err_;
  EXPECT_NE(reason({"--rung", "cpu_naive", "--messages", "5"}).find("--messages"), std::string::npos) << err_;
}

TEST_F(KernelsCommand, ProductIsAWorkloadOfTheQueues) {
  for (const char* rung : {"naive", "register_tiles"}) {
    ASSERT_EQ(feedrate({"run", "--workload", "matmul", "--work-rung", rung, "--payload", "2048", "--queue", "gpu_ring",
                        "--device", "cpu", "--messages", "500", "--warmup", "0", "--json", "--floor-rounds", "1"}),
              0)
        << err_;
    EXPECT_EQ(measured_in(out_).at(0).at("params").at("workload"), "matmul");
  }
  EXPECT_EQ(feedrate({"run", "--workload", "matmul", "--payload", "1000", "--device", "cpu"}), 2);
  EXPECT_NE(err_.find("matmul needs 8 n^2 bytes"), std::string::npos) << err_;
}

}  // namespace
}  // namespace feedrate::cli_test
