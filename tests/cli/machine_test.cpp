// The machine monitor's output conforms to the schema that `validate` checks.
#include "experiments/harness/machine/machine_monitor.hpp"
#include "tests/cli/feedrate_process.hpp"

namespace feedrate::cli_test {
namespace {

class MachineRow : public testing::Test {
 protected:
  /// Validates a row of a run whose `machine` is replaced by this one.
  Outcome validate(const Json& machine) {
    const Outcome run =
        place_.run({"run", "--device", "cpu", "--queue", "null", "--messages", "100", "--warmup", "0", "--json"});
    Json row = measured_in(run.out).at(0);
    row["machine"] = machine;
    place_.write("rows.jsonl", row.dump() + "\n");
    return place_.run({"validate", "rows.jsonl"});
  }
  Workplace place_;
};

/// A GPU that reports every value.
std::optional<GpuSample> whole_sample(bool) {
  GpuSample sample;
  for (auto value : {&GpuSample::energy_j, &GpuSample::pcie_rx_bytes_per_second, &GpuSample::pcie_tx_bytes_per_second,
                     &GpuSample::sm_clock_mhz, &GpuSample::sm_clock_limit_mhz, &GpuSample::memory_clock_mhz,
                     &GpuSample::power_w, &GpuSample::temperature_c}) {
    sample.*value = 1e-9 * static_cast<double>(std::chrono::steady_clock::now().time_since_epoch().count());
  }
  sample.utilisation = sample.memory_utilisation = 1;
  sample.clock_reasons = ~std::uint64_t{0};
  return sample;
}

TEST_F(MachineRow, RowOfThisMachineIsValid) {
  MachineMonitor monitor;
  std::this_thread::sleep_for(Seconds(0.2));
  const Outcome outcome = validate(to_json(monitor.stop()));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
}

TEST_F(MachineRow, RowOfLongPhaseWithAllGpuValuesIsValid) {
  MachineMonitor monitor(whole_sample, 0.01);
  std::this_thread::sleep_for(Seconds(2));
  const MachineState state = monitor.stop();
  EXPECT_GT(state.samples.size(), 120u);
  EXPECT_GT(energy_j(state).value_or(0), 0);
  const Outcome outcome = validate(to_json(state));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
}

TEST_F(MachineRow, RowOfUnknownMachineIsValid) {
  MachineMonitor monitor([](bool) { return std::optional(GpuSample{}); }, 1, "/nowhere");
  const Outcome outcome = validate(to_json(monitor.stop()));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
}

TEST_F(MachineRow, RowWithWrongTypeIsRejected) {
  Json machine = to_json(MachineState{});
  machine["host"]["own_cores"] = "many";
  const Outcome outcome = validate(machine);
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.err.find("own_cores"), std::string::npos) << outcome.err;
}

/// A control group (v1 or v2) limited to a tenth of a core; only root may create one.
class TenthOfACore {
 public:
  TenthOfACore() {
    for (const fs::path root : {"/sys/fs/cgroup/cpu", "/sys/fs/cgroup"}) {
      folder_ = root / ("feedrate-test-" + std::to_string(getpid()));
      std::error_code error;
      if (!fs::create_directory(folder_, error)) continue;
      if (fs::exists(folder_ / "cpu.cfs_quota_us")) write_text(folder_ / "cpu.cfs_quota_us", "10000");
      if (fs::exists(folder_ / "cpu.max")) write_text(folder_ / "cpu.max", "10000 100000");
      there_ =
          read_text(folder_ / "cpu.cfs_quota_us") == "10000\n" || read_text(folder_ / "cpu.max").starts_with("10000 ");
      if (there_) return;
      rmdir(folder_.c_str());
    }
  }
  TenthOfACore(const TenthOfACore&) = delete;
  ~TenthOfACore() {
    if (there_) await([this] { return rmdir(folder_.c_str()) == 0; });  // possible once its processes are gone
  }
  bool there() const { return there_; }
  fs::path processes() const { return folder_ / "cgroup.procs"; }

 private:
  fs::path folder_;
  bool there_ = false;
};

TEST_F(MachineRow, RowReportsAnExhaustedCpuQuota) {
  const TenthOfACore group;
  if (!group.there()) GTEST_SKIP() << "this process may not create a control group for CPU time";
  Process process({"/bin/sh", "-c", "echo $$ > \"$0\" && exec \"$@\"", group.processes(), executable(), "run",
                   "--device", "cpu", "--queue", "host_polled", "--seconds", "0.5", "--floor-rounds", "0", "--json"},
                  place_.path(), place_ / "quota");
  EXPECT_EQ(process.wait(), 0) << process.err();
  const auto rows = rows_of(process.out());
  EXPECT_EQ(rows.at(0).at("environment").at("cores"), 1) << "a tenth of a core counts as one core";
  const Json& row = rows.at(1);
  EXPECT_EQ(row.at("machine").at("host").at("quota").at("cores"), 0.1);
  EXPECT_GT(row.at("machine").at("host").at("quota").at("throttled"), 0);
  EXPECT_NE(row.at("machine").at("disturbances").dump().find("CPU quota of 0.1 cores"), std::string::npos) << row;
  EXPECT_EQ(row.at("status"), "invalid");
  EXPECT_EQ(place_.run({"validate", "quota.out"}).code, 0);
}

}  // namespace
}  // namespace feedrate::cli_test
