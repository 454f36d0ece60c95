#pragma once
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "experiments/feeding/axes.hpp"
#include "experiments/harness/measure/session.hpp"

namespace feedrate::test {

/// Settings for a run that is short, but long enough for every ring to wrap many times.
inline RunSettings brief(std::uint64_t messages = 20'000) {
  RunSettings settings;
  settings.messages = messages;
  settings.warmup_seconds = 0;
  settings.watchdog_seconds = 20;
  settings.keep_disturbed = true;  // tests run on shared machines
  return settings;
}

inline Json run_cell(Session& session, const Point& point, unsigned repetition = 0) {
  return session.run_cell(session.resolve(values_of(point)), repetition);
}

/// The row of one cell that is measured in its own session on the CPU device.
inline Json run_cell(const Point& point, const RunSettings& settings) {
  Session session("feeding", "cpu", 0, {}, "test", settings);
  return run_cell(session, point);
}

/// Expects that all messages of the row came back exactly once and were correct, and that the row has a throughput.
inline void expect_clean(const Json& row) {
  // A row is invalid near the load generator's own limit or alongside other work. Its messages can still be correct.
  const bool disturbed = row["cause"] == "driver_unknown" || row["cause"] == "disturbed";
  const bool generator_bound = row["cause"] == "driver_bound" && row["details"]["driver"]["ratio"] > 0.9;
  EXPECT_TRUE(row["status"] == "ok" || generator_bound || disturbed) << row.dump(1);
  const Json& counts = row["details"]["counts"];
  EXPECT_GT(counts["sent"], 0);
  EXPECT_EQ(counts["sent"], counts["received"]);
  for (const char* wrong : {"lost", "duplicated", "corrupted"}) EXPECT_EQ(counts[wrong], 0) << wrong;
  ASSERT_TRUE(row.contains("figures")) << row.dump(1);
  EXPECT_GT(row["figures"]["messages_per_second"], 0);
  EXPECT_GT(row["figures"]["latency_ns"]["samples"], 0);
}

struct Case {
  std::string name;
  Point point;
  std::uint64_t messages = 20'000;
};
inline void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }
inline std::string case_name(const testing::TestParamInfo<Case>& info) { return info.param.name; }

/// Runs the case and expects a clean row. Skips the test if the device does not support the case's transfer.
void run_case(Session& session, const Case& one);

/// The cases that every queue must pass on every device: all transfers and workloads, windows from lone messages to
/// more than the slots hold, odd sizes, several producers. This function opens no device, because tests are listed
/// before any test runs, and some tests must be the first in their process to use the GPU.
std::vector<Case> cases_for(const std::string& queue, const std::string& device);

}  // namespace feedrate::test
