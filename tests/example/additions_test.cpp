/// The cost of an addition: each example in this folder is one file, and its registration makes all of its parts known.
/// tests/scripts/test_additions.py counts the files.
#include <algorithm>
#include <set>

#include "experiments/feeding/bounds.hpp"
#include "experiments/feeding/feeding.hpp"
#include "experiments/harness/measure/catalogue.hpp"
#include "tests/support/cells.hpp"
#include "tests/support/points.hpp"
#include "variants/feeding/queue.hpp"

namespace feedrate::test {
namespace {

const Json& named(const Json& list, const std::string& name) {
  return *std::find_if(list.begin(), list.end(), [&](const Json& each) { return each.at("name") == name; });
}

Point mailbox() {
  Point point;
  point.queue = "mailbox";
  return point;
}

TEST(Additions, BrokerFileRegistersItsAxisLimitAndGuarantee) {
  Session session("feeding", "cpu", 0, {}, "test", brief(5'000));
  Point point = mailbox();
  test::set(point, "resend-every", 100);
  const std::vector<Resolution> cells{session.resolve(values_of(point))};
  session.measure_limits(cells);
  const Json row = session.run_cell(cells[0], 0);
  EXPECT_NE(row["status"], "failed") << row["reason"] << ": an at-least-once queue may duplicate a message";
  EXPECT_EQ(row["details"]["counts"]["duplicated"], 50);
  EXPECT_EQ(row["details"]["counts"]["lost"], 0);
  EXPECT_EQ(row["params"]["resend_every"], 100);
  EXPECT_EQ(row["cost"]["delivery"], "at least once");
  EXPECT_GT(session.limits().at("mailbox_locks_per_second"), 0);
  // Another measured limit may be the tightest.
  std::set<std::string> rates;
  for (const auto& [figure, bound] : bounds_of(point, session.limits(), {}, 0)) {
    if (figure == "messages_per_second") rates.insert(bound.text());
  }
  EXPECT_TRUE(rates.contains("mailbox_locks_per_second"));
}

TEST(Additions, StrongerGuaranteesForbidDuplicates) {
  const Counts twice{.sent = 10, .received = 10, .duplicated = 1};
  EXPECT_EQ(wrong_results(twice, Delivery::at_least_once), "");
  EXPECT_NE(wrong_results(twice, Delivery::exactly_once), "");
  EXPECT_NE(wrong_results(twice, Delivery::at_most_once), "");
  const Counts lost{.sent = 10, .received = 9, .lost = 1};
  EXPECT_NE(wrong_results(lost, Delivery::at_most_once), "");
  EXPECT_EQ(wrong_results(lost, Delivery::at_most_once, true), "") << "planted faults may lose messages";
  EXPECT_NE(wrong_results(lost, Delivery::at_least_once, true), "");
  const Counts wrong{.sent = 10, .received = 10, .corrupted = 1};
  for (const Delivery each : {Delivery::exactly_once, Delivery::at_most_once, Delivery::at_least_once}) {
    EXPECT_NE(wrong_results(wrong, each, true), "");
  }
}

TEST(Additions, TransferAxisAppliesOnlyToItsTransfer) {
  Session session("feeding", "cpu", 0, {}, "test", brief(2'000));
  Point point;
  point.queue = "host_polled";
  point.transfer = "relay";
  test::set(point, "copies-each", 3);
  const Json row = run_cell(session, point);
  expect_clean(row);
  EXPECT_EQ(row["params"]["copies_each"], 3);
  EXPECT_FALSE(row["params"].contains("streams")) << "this axis belongs to other transfers";
  point.transfer = "pinned";
  EXPECT_FALSE(run_cell(session, point)["params"].contains("copies_each"));
}

TEST(Additions, CatalogueListsAllAdditions) {
  const Json all = catalogue();
  EXPECT_EQ(named(all["queues"], "mailbox")["axes"], Json::array({"resend-every"}));
  EXPECT_EQ(named(all["axes"], "resend-every")["owners"], Json::array({"mailbox"}));
  EXPECT_EQ(named(all["axes"], "copies-each")["owners"], Json::array({"relay"}));
  EXPECT_EQ(named(all["limits"], "mailbox_locks_per_second")["unit"], "1/s");
  EXPECT_EQ(named(all["experiments"], "count")["figures"].size(), 2u);
  EXPECT_EQ(named(all["axes"], "step")["experiment"], "count");
}

TEST(Additions, HarnessMeasuresAnAddedExperiment) {
  Session session("count", "cpu", 0, {}, "test", brief());
  RunSettings settings = session.settings();
  settings.seconds = 0.02;
  session.exchange_settings(settings);
  const Json row = session.run_cell(session.resolve({{"step", std::uint64_t{4}}}), 0);
  EXPECT_EQ(row["status"], "ok") << row;
  EXPECT_EQ(row["experiment"], "count");
  EXPECT_GT(row["figures"]["counted_per_second"], 0);
  EXPECT_GT(row["figures"]["step_ns"]["samples"], 0);
  EXPECT_EQ(row["settings"]["seconds"], 0.02) << "the duration set for this cell, not the run's";
  const Json skipped = session.run_cell(session.resolve({{"step", std::uint64_t{13}}}), 0);
  EXPECT_EQ(skipped["status"], "skipped");
  EXPECT_EQ(skipped["cause"], "impossible");
}

}  // namespace
}  // namespace feedrate::test
