// What the monitor writes is what the schema takes, and `validate` looks at it.
#include "experiments/machine/machine_monitor.hpp"
#include "tests/cli/feedrate_process.hpp"

namespace feedrate::cli_test {
namespace {

class MachineRow : public testing::Test {
 protected:
  /// A row of a run, with this as its `machine`.
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

/// A GPU that tells everything.
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

TEST_F(MachineRow, OfThisMachineIsValid) {
  MachineMonitor monitor;
  std::this_thread::sleep_for(Seconds(0.2));
  const Outcome outcome = validate(to_json(monitor.stop()));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
}

TEST_F(MachineRow, OfAWholeGpuForLongIsValid) {
  MachineMonitor monitor(whole_sample, 0.01);
  std::this_thread::sleep_for(Seconds(2));
  const MachineState state = monitor.stop();
  EXPECT_GT(state.samples.size(), 120u);
  EXPECT_GT(energy_j(state).value_or(0), 0);
  const Outcome outcome = validate(to_json(state));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
}

TEST_F(MachineRow, OfAnUnknownMachineIsValid) {
  MachineMonitor monitor([](bool) { return std::optional(GpuSample{}); }, 1, "/nowhere");
  const Outcome outcome = validate(to_json(monitor.stop()));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
}

TEST_F(MachineRow, OfNonsenseIsRefused) {
  Json machine = to_json(MachineState{});
  machine["host"]["own_cores"] = "many";
  const Outcome outcome = validate(machine);
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.err.find("own_cores"), std::string::npos) << outcome.err;
}

}  // namespace
}  // namespace feedrate::cli_test
