#include "experiments/harness/machine/machine_state.hpp"

#include <gtest/gtest.h>

namespace feedrate {
namespace {

using namespace clock_reason;

GpuSample gpu(std::uint64_t reasons, double sm_clock_mhz = 1980) {
  GpuSample sample;
  sample.sm_clock_mhz = sm_clock_mhz;
  sample.sm_clock_limit_mhz = 1980;
  sample.clock_reasons = reasons;
  return sample;
}

MachineState with_samples(const std::vector<GpuSample>& samples) {
  MachineState state;
  for (const auto& sample : samples) state.samples.push_back({static_cast<double>(state.samples.size()), sample});
  return state;
}

MachineState with_host(double seconds, double own_cores, double stolen_share) {
  MachineState state;
  state.host.seconds = seconds;
  state.host.own_cores = own_cores;
  state.host.cores = {{.busy = 0.9, .steal = stolen_share}, {.busy = 0.1, .steal = 0}};
  return state;
}

/// All disturbances, joined into one string.
std::string disturbed(const MachineState& state) {
  std::string text;
  for (const auto& each : disturbances(state)) text += each.text + "\n";
  return text;
}

TEST(ClockReasons, ReasonsHaveNames) {
  EXPECT_TRUE(clock_reason_names(0).empty());
  EXPECT_EQ(clock_reason_names(kIdle | kHardwareThermal | kDisplayClocks),
            (std::vector<std::string>{"idle", "hardware thermal", "display clocks"}));
  EXPECT_EQ(clock_reason_names(0x200 | kPowerCap), (std::vector<std::string>{"power cap", "0x200"}));
}

TEST(Disturbances, UnknownOrQuietMachineHasNoDisturbances) {
  EXPECT_EQ(disturbed({}), "");
  EXPECT_EQ(disturbed(with_samples({GpuSample{}, GpuSample{}})), "");
  EXPECT_EQ(disturbed(with_samples({gpu(0), gpu(0, 1755)})), "");
}

TEST(Disturbances, IdleAndChosenClocksAreBenign) {
  EXPECT_EQ(disturbed(with_samples({gpu(kIdle, 345), gpu(kApplicationClocks, 1200)})), "");
  EXPECT_EQ(disturbed(with_samples({gpu(0x200)})), "");  // a reason without a name is not known to be harmful
}

TEST(Disturbances, EveryThrottleUnderLoadIsNamed) {
  for (const auto reason :
       {kPowerCap, kHardwareSlowdown, kSyncBoost, kSoftwareThermal, kHardwareThermal, kPowerBrake, kDisplayClocks}) {
    const std::string text = disturbed(with_samples({gpu(0), gpu(reason, 1800), gpu(0)}));
    EXPECT_NE(text.find(clock_reason_names(reason).at(0) + " in 1 of 3 samples"), std::string::npos) << text;
    EXPECT_NE(text.find("between 1800 and 1980 MHz"), std::string::npos) << text;
  }
}

TEST(Disturbances, IdleGpuReportsOnlyHealthReasons) {
  EXPECT_EQ(disturbed(with_samples({gpu(kIdle | kPowerCap), gpu(kIdle | kSyncBoost | kDisplayClocks)})), "");
  EXPECT_NE(disturbed(with_samples({gpu(kIdle | kHardwareThermal)})).find("hardware thermal"), std::string::npos);
}

TEST(Disturbances, SlowClockIsReportedOnlyUnderLoad) {
  EXPECT_EQ(disturbed(with_samples({gpu(0, 1486), gpu(kIdle, 1000)})), "");  // just above 75 %
  const std::string text = disturbed(with_samples({gpu(0, 1980), gpu(0, 1480)}));
  EXPECT_NE(text.find("fell to 1480 of 1980 MHz under load, 75 %"), std::string::npos) << text;
}

TEST(Disturbances, UtilisationShowsLoadIfReasonsAreUnknown) {
  GpuSample slow = gpu(0, 345);
  slow.clock_reasons.reset();
  EXPECT_EQ(disturbed(with_samples({slow})), "");
  slow.utilisation = 0;
  EXPECT_EQ(disturbed(with_samples({slow})), "");
  slow.utilisation = 0.4;
  EXPECT_NE(disturbed(with_samples({slow})), "");
}

TEST(Disturbances, StolenTimeIsRelativeToOwnCpuTime) {
  EXPECT_EQ(disturbed(with_host(10, 1, 0.019)), "");
  const std::string text = disturbed(with_host(10, 1, 0.03));
  EXPECT_NE(text.find("stole 0.30 s of CPU time while this process used 10.00 s"), std::string::npos) << text;
  EXPECT_EQ(disturbed(with_host(10, 2, 0.03)), "");  // 1.5 % of two cores
}

TEST(Disturbances, StolenTimeOfTwoTicksIsNotReported) {
  EXPECT_EQ(disturbed(with_host(0.2, 1, 0.1)), "");  // 10 % of the time, but only two ticks
  EXPECT_NE(disturbed(with_host(0.2, 1, 0.2)), "");
}

TEST(Disturbances, ExhaustedQuotaIsReported) {
  MachineState state = with_host(2, 1, 0);
  state.host.quota_cores = 0.5;
  state.host.periods = 20;
  EXPECT_EQ(disturbed(state), "") << "the quota was not reached";
  state.host.throttled = 7;
  EXPECT_EQ(disturbed(state), "the CPU quota of 0.5 cores was used up in 7 of 20 periods\n");
  EXPECT_EQ(to_json(state)["host"]["quota"], (Json{{"cores", 0.5}, {"periods", 20}, {"throttled", 7}}));
}

/// A host with 16 cores: this process uses 15, and other processes use the given number.
MachineState with_neighbours(double seconds, double other, double service_cores = 0, double own = 15) {
  MachineState state;
  state.host.seconds = seconds;
  state.host.own_cores = own;
  const double busy = std::min(16.0, own + other + service_cores);
  state.host.cores.assign(16, {.busy = busy / 16, .steal = 0});
  state.host.own_cores = busy - other - service_cores;
  state.service_cores = service_cores;
  return state;
}

TEST(Disturbances, NeighboursDisturbOnlyIfNoCoreIsIdle) {
  EXPECT_EQ(disturbed(with_neighbours(1, 0.05)), "");
  const MachineState crowded = with_neighbours(1, 1.5);
  EXPECT_EQ(disturbed(crowded),
            "other processes used 1.50 cores while only 0.00 of 16 were idle (up to 0.10 is normal)\n");
  EXPECT_TRUE(disturbances(crowded)[0].excludes);
  EXPECT_EQ(disturbed(with_neighbours(1, 1.5, 0, 10)), "") << "there are idle cores";
  EXPECT_EQ(disturbed(with_neighbours(1, 0.05, 1)), "") << "the server belongs to the measurement";
  MachineState helped = with_neighbours(1, 1.5);
  helped.host.children_cores = 1.45;
  EXPECT_EQ(disturbed(helped), "") << "processes that this one started belong to the measurement";
}

TEST(Disturbances, NeighboursWithinTheErrorOfTicksAreNotReported) {
  EXPECT_EQ(disturbed(with_neighbours(0.1, 0.6)), "") << "16 cores, each known to within a tick of ten";
  EXPECT_NE(disturbed(with_neighbours(1, 0.6)), "");
}

TEST(Disturbances, OnlyKindsThatATrialCouldInjectExclude) {
  MachineState state = with_host(1, 1, 0.1);
  state.samples = with_samples({gpu(kHardwareThermal, 900)}).samples;
  for (const auto& each : disturbances(state)) EXPECT_FALSE(each.excludes) << each.text;
  state.host.quota_cores = 0.5;
  state.host.throttled = 1;
  EXPECT_TRUE(disturbances(state)[0].excludes);
}

TEST(Disturbances, AllDisturbancesAreReported) {
  MachineState state = with_host(1, 1, 0.1);
  state.samples = with_samples({gpu(kHardwareThermal, 900)}).samples;
  EXPECT_EQ(disturbances(state).size(), 3u);
  EXPECT_EQ(to_json(state).at("disturbances").size(), 3u);
}

TEST(MachineSummary, PowerIsDerivedFromEnergyIfItIsCounted) {
  GpuSample first, middle, last;
  first.power_w = middle.power_w = last.power_w = 700;
  first.energy_j = 1000;
  last.energy_j = 1250;
  const auto state = with_samples({first, middle, last});  // two seconds
  EXPECT_DOUBLE_EQ(*energy_j(state), 250);
  EXPECT_DOUBLE_EQ(*power_w(state), 125);
  last.energy_j = 900;  // the driver was reloaded
  EXPECT_FALSE(energy_j(with_samples({first, last})));
  EXPECT_DOUBLE_EQ(*power_w(with_samples({first, last})), 700);
  EXPECT_FALSE(power_w(with_samples({GpuSample{}})));
}

TEST(MachineSummary, RangeCoversOnlySamplesWithTheValue) {
  const auto state = with_samples({gpu(0, 1000), GpuSample{}, gpu(0, 2000)});
  const auto clock = range_of(state, &GpuSample::sm_clock_mhz);
  ASSERT_TRUE(clock);
  EXPECT_EQ(clock->min, 1000);
  EXPECT_EQ(clock->mean, 1500);
  EXPECT_EQ(clock->max, 2000);
  EXPECT_FALSE(range_of(state, &GpuSample::power_w));
}

TEST(MachineJson, GpuIsSummarised) {
  GpuSample hot = gpu(kPowerCap, 1755);
  hot.temperature_c = 80;
  hot.utilisation = 0.5;
  hot.pcie_rx_bytes_per_second = 3e9;
  GpuSample cool = gpu(kIdle, 1980);
  cool.temperature_c = 40;
  cool.utilisation = 1;
  const Json json = to_json(with_samples({hot, cool}));
  const Json& summary = json.at("gpu");
  EXPECT_EQ(summary.at("sm_clock_mhz"), (Json{{"min", 1755}, {"mean", 1867.5}, {"max", 1980}}));
  EXPECT_EQ(summary.at("throttle_reasons"), (Json{"idle", "power cap"}));
  EXPECT_EQ(summary.at("temperature_c"), 80);
  EXPECT_EQ(summary.at("utilisation"), 0.75);
  EXPECT_EQ(summary.at("pcie_rx_bytes_per_second"), 3e9);
  EXPECT_FALSE(summary.contains("power_w"));
  EXPECT_EQ(json.at("samples").at(1).at("t"), 1);
  EXPECT_EQ(json.at("samples").at(1).at("gpu").at("sm_clock_mhz"), 1980);
}

TEST(MachineJson, MachineWithoutGpuHasNoGpuField) {
  const Json json = to_json(with_host(1, 0.5, 0.25));
  EXPECT_FALSE(json.contains("gpu"));
  EXPECT_EQ(json.at("samples"), Json::array());
  const Json& host = json.at("host");
  EXPECT_EQ(host.at("cores"), 2);
  EXPECT_EQ(host.at("busy_cores"), 1);
  EXPECT_EQ(host.at("other_cores"), 0.5);
  EXPECT_EQ(host.at("steal_share"), 0.125);
  EXPECT_EQ(host.at("steal_share_highest_core"), 0.25);
  EXPECT_EQ(host.at("per_core_busy"), (Json{0.9, 0.1}));
}

TEST(MachineJson, UnknownCoresAreOmitted) {
  const Json host = to_json(MachineState{}).at("host");
  for (const char* key : {"cores", "busy_cores", "steal_share", "per_core_busy"})
    EXPECT_FALSE(host.contains(key)) << key;
  EXPECT_FALSE(host.at("context_switches").contains("system"));
}

TEST(MachineJson, SamplesOfLongPhasesAreThinnedExceptTheEnds) {
  for (const std::size_t n : {1, 2, 119, 120, 121, 1000}) {
    const Json samples = to_json(with_samples(std::vector<GpuSample>(n, gpu(0)))).at("samples");
    EXPECT_EQ(samples.size(), std::min<std::size_t>(n, 120));
    EXPECT_EQ(samples.front().at("t"), 0);
    EXPECT_EQ(samples.back().at("t"), n - 1);
    for (std::size_t i = 1; i < samples.size(); ++i) EXPECT_GT(samples[i].at("t"), samples[i - 1].at("t"));
  }
}

TEST(MachineJson, JsonIsShortEnoughForThousandsOfRows) {
  MachineState state = with_samples(std::vector<GpuSample>(2, gpu(kPowerCap, 1980 / 1.7)));
  for (auto& [t, sample] : state.samples) {
    sample.power_w = sample.temperature_c = sample.energy_j = 1000.0 / 3;
    sample.utilisation = sample.memory_utilisation = 1.0 / 3;
    sample.pcie_rx_bytes_per_second = sample.pcie_tx_bytes_per_second = 1e11 / 3;
    sample.memory_clock_mhz = 2619;
  }
  state.host.cores.assign(16, {.busy = 1.0 / 3, .steal = 1.0 / 3});
  EXPECT_LT(to_json(state).dump().size(), 1800u);
}

}  // namespace
}  // namespace feedrate
