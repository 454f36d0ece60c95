#include "experiments/feeding/answer.hpp"

#include <gtest/gtest.h>

#include <regex>

#include "experiments/feeding/axes.hpp"
#include "experiments/harness/sweep/progress.hpp"

namespace feedrate::test {
namespace {

struct Cell {
  std::string queue, transfer = "none";
  std::size_t payload = 64, window = 256;
  double messages = 1e6, p50 = 1000;
  std::string status = "ok", cause = "";
};

Json row_of(const Cell& cell) {
  return {{"kind", "cell"},
          {"status", cell.status},
          {"cause", cell.cause},
          {"params",
           {{"queue", cell.queue},
            {"transfer", cell.transfer},
            {"payload_bytes", cell.payload},
            {"window", cell.window},
            {"producers", 1},
            {"arrivals", "closed"},
            {"device", "cpu"}}},
          {"figures",
           {{"messages_per_second", cell.messages},
            {"bytes_per_second", cell.messages * static_cast<double>(cell.payload)},
            {"latency_ns", {{"p50", cell.p50}}}}}};
}

/// Adds three repetitions: the cell itself, and the cell with one percent less and one percent more.
void add(Answer& answer, Cell cell) {
  const double messages = cell.messages, p50 = cell.p50;
  for (const double factor : {0.99, 1.0, 1.01}) {
    cell.messages = messages * factor;
    cell.p50 = p50 * factor;
    answer.add(row_of(cell));
  }
}

TEST(Answer, AnswerShowsTheBestPointOfEachVariantInOrder) {
  Answer answer;
  add(answer, {.queue = "gpu_ring", .messages = 3e6});
  add(answer, {.queue = "gpu_ring", .window = 512, .messages = 4e6});
  add(answer, {.queue = "host_polled", .transfer = "pinned", .messages = 2e6});
  const auto categories = answer.categories();
  ASSERT_EQ(categories.size(), 1u);
  EXPECT_EQ(categories[0].name, "small");
  ASSERT_EQ(categories[0].places.size(), 2u);
  EXPECT_EQ(categories[0].places[0].variant, "gpu_ring");
  EXPECT_DOUBLE_EQ(categories[0].places[0].value.median, 4e6);
  EXPECT_NEAR(*categories[0].places[0].value.reach, 4.303 * 0.01 / std::sqrt(3.0) * std::sqrt(1.346), 1e-5);
  EXPECT_EQ(categories[0].places[1].variant, "host_polled + pinned");
  EXPECT_NE(answer.text().find("next: 2 × less "), std::string::npos) << answer.text();
  EXPECT_NE(answer.text().find("with window=512"), std::string::npos) << "the settings of the best variant:\n"
                                                                      << answer.text();
  EXPECT_NE(answer.text().find("NOT GPU results"), std::string::npos) << answer.text();
}

TEST(Answer, BestOfSeveralPointsIsMeasuredAfreshAndOnlyThatCounts) {
  Answer answer;
  add(answer, {.queue = "gpu_ring", .messages = 3e6});
  add(answer, {.queue = "gpu_ring", .window = 512, .messages = 4e6});
  add(answer, {.queue = "gpu_ring", .window = 1024, .messages = 1e6});
  add(answer, {.queue = "host_polled", .transfer = "pinned", .messages = 2e6});
  const auto chosen = answer.chosen();
  ASSERT_EQ(chosen.size(), 2u);
  EXPECT_EQ(chosen[0].of, 3u);
  EXPECT_EQ(chosen[0].values.at("window"), Value(std::uint64_t{512}));
  EXPECT_EQ(chosen[1].of, 1u);
  for (const double messages : {1.4e6, 1.5e6, 1.6e6}) {
    Json row = row_of({.queue = "gpu_ring", .window = 512, .messages = messages});
    row["afresh"] = {{"of", 3}};
    answer.add(row);
  }
  const auto places = answer.categories().at(0).places;
  EXPECT_EQ(places[0].variant, "host_polled + pinned") << "the lucky point is not the best after all";
  EXPECT_DOUBLE_EQ(places[1].value.median, 1.5e6);
  EXPECT_EQ(answer.chosen()[1].values.at("window"), Value(std::uint64_t{512})) << "new rows must not change the choice";
}

TEST(Answer, AnswerNamesMembersThatDidNotCompete) {
  Answer answer;
  add(answer, {.queue = "gpu_ring", .messages = 3e6});
  Json tried = row_of({.queue = "host_polled", .transfer = "graph"});
  tried["search"] = {{"try", 1}};
  answer.add(tried);
  const std::string text = answer.text();
  const std::string absent = text.substr(text.find("did not compete: "));
  EXPECT_NE(absent.find("redis_list"), std::string::npos) << text;
  EXPECT_NE(absent.find("batched_copy"), std::string::npos) << text;
  for (const char* present : {"gpu_ring", "host_polled", "graph", "null"}) {
    EXPECT_EQ(absent.find(present), std::string::npos) << text;
  }
}

TEST(Answer, SingleLargePayloadIsLabelledLarge) {
  Answer answer;
  add(answer, {.queue = "gpu_ring", .payload = 65536, .messages = 1e3});
  EXPECT_EQ(answer.categories().at(0).name, "large");
}

TEST(Answer, OutlierDoesNotMoveTheMedianAndNoIntervalReachesZero) {
  Answer answer;
  for (const double p50 : {5000.0, 4900.0, 25'000.0})
    answer.add(row_of({.queue = "gpu_ring", .window = 1, .p50 = p50}));
  const auto place = answer.categories().back().places[0];
  EXPECT_DOUBLE_EQ(place.value.median, 5000);
  EXPECT_NE(answer.text().find(" within "), std::string::npos) << answer.text();
}

TEST(Answer, LargeIsRankedByBytesAndLoneByLatency) {
  Answer answer;
  add(answer, {.queue = "gpu_ring", .payload = 65536, .messages = 1e3});
  add(answer, {.queue = "redis_list", .payload = 65536, .messages = 5e3});
  add(answer, {.queue = "gpu_ring", .window = 1, .messages = 9e5, .p50 = 800});
  add(answer, {.queue = "redis_list", .window = 1, .messages = 1e5, .p50 = 9000});
  const auto categories = answer.categories();
  ASSERT_EQ(categories.size(), 3u);
  EXPECT_EQ(categories[1].payload, 65536u);
  EXPECT_EQ(categories[1].places[0].variant, "redis_list");
  EXPECT_EQ(categories[2].name, "lone");
  EXPECT_EQ(categories[2].places[0].variant, "gpu_ring");
  EXPECT_DOUBLE_EQ(categories[2].places[0].value.median, 800);
}

TEST(Answer, TriesInvalidRowsAndTheNullQueueAreExcluded) {
  Answer answer;
  Json try_row = row_of({.queue = "gpu_ring", .messages = 9e9});
  try_row["search"] = Json::object();
  answer.add(try_row);
  answer.add(row_of({.queue = "gpu_ring", .messages = 9e9, .status = "invalid", .cause = "no_results"}));
  answer.add(row_of({.queue = "null", .messages = 9e9}));
  EXPECT_EQ(answer.text(), "");
  answer.add(row_of({.queue = "gpu_ring", .messages = 5e6, .status = "invalid", .cause = "driver_bound"}));
  EXPECT_NE(answer.text().find("at least 5 M msg/s"), std::string::npos) << answer.text();
}

TEST(Answer, DisturbedRowsAreShownOnlyIfAPointHasNoOthers) {
  const Json ring = row_of({.queue = "gpu_ring", .messages = 9e6, .status = "invalid", .cause = "disturbed"});
  Answer answer;
  answer.add(ring);
  answer.add(row_of({.queue = "redis_list", .messages = 2e6}));
  EXPECT_NE(answer.text().find("9 M msg/s, every run disturbed"), std::string::npos) << answer.text();
  answer.add(row_of({.queue = "gpu_ring", .messages = 4e6}));
  answer.add(ring);
  EXPECT_NE(answer.text().find("4 M msg/s"), std::string::npos) << answer.text();
  EXPECT_EQ(answer.text().find("disturbed"), std::string::npos) << answer.text();
}

TEST(Answer, OverlappingIntervalsAreUnclear) {
  Answer answer;
  add(answer, {.queue = "gpu_ring", .messages = 1.00e6});
  add(answer, {.queue = "redis_list", .messages = 0.98e6});
  EXPECT_NE(answer.text().find("next: unclear "), std::string::npos) << answer.text();
}

TEST(Answer, RunnerUpLimitedByTheGeneratorIsUnclear) {
  Answer answer;
  add(answer, {.queue = "gpu_ring", .messages = 9e6});
  add(answer, {.queue = "redis_list", .messages = 3e6, .status = "invalid", .cause = "driver_bound"});
  EXPECT_NE(answer.text().find("at least 3 M msg/s"), std::string::npos) << answer.text();
  EXPECT_NE(answer.text().find("next: unclear "), std::string::npos) << answer.text();
}

TEST(Answer, OnlyInstabilityOfTheShownMetricIsReported) {
  const auto text_of = [](const char* metric) {
    Answer answer;
    Json row = row_of({.queue = "gpu_ring"});
    row["stop"]["unstable"] = Json::array({metric});
    answer.add(row);
    return answer.text();
  };
  EXPECT_NE(text_of("messages_per_second").find("unstable"), std::string::npos);
  EXPECT_EQ(text_of("latency_ns.p99").find("unstable"), std::string::npos) << "the answer shows a rate, not a p99";
}

TEST(Answer, TextFitsATerminal) {
  Answer answer;
  for (const char* queue : {"redis_stream", "host_polled"}) {
    for (const std::size_t payload : {64, 65536}) {
      add(answer, {.queue = queue, .transfer = "pageable", .payload = payload, .messages = 123456});
      add(answer, {.queue = queue, .transfer = "pageable", .payload = payload, .window = 1, .p50 = 123456});
    }
  }
  std::istringstream lines(answer.text());
  for (std::string line; std::getline(lines, line);) EXPECT_EQ(shortened(line, 80), line);
}

TEST(ProgressLine, LineIsCutBetweenCharacters) {
  EXPECT_EQ(shortened("12345", 5), "12345");
  EXPECT_EQ(shortened("123456", 5), "1234…");
  EXPECT_EQ(shortened("µµµµµ", 5), "µµµµµ");
  EXPECT_EQ(shortened("µµµµµµ", 5), "µµµµ…");
}

TEST(ProgressLine, LineWrapsAtSpaces) {
  EXPECT_EQ(wrapped("one two three four", 2, 9), "one two\n  three\n  four");
  EXPECT_EQ(wrapped("µµµ µµµµ", 2, 8), "µµµ µµµµ");
  EXPECT_EQ(wrapped("muchtoolong for it", 1, 5), "muchtoolong\n for\n it");
}

TEST(ProgressLine, LabelsNameTheAxesThatVary) {
  Point one, two;
  one.queue = two.queue = "null";
  two.payload = 4096;
  two.window = 1;
  const ExperimentInfo info("feeding");
  const Labels labels(info, {{values_of(one), ""}, {values_of(two), ""}});
  EXPECT_EQ(labels.of(values_of(one)), "null + pinned 64B window=256");
  EXPECT_EQ(labels.of(values_of(two)), "null + pinned 4KiB window=1");
}

TEST(Crowding, CrowdingIsReportedOnceAndOnlyIfItOccurs) {
  Point fits, crowded;
  fits.producers = 1;
  fits.workers = 0;
  crowded.producers = 4;
  crowded.workers = 1;
  const ExperimentInfo info("feeding");
  EXPECT_EQ(crowded_text(info, {{values_of(fits), ""}}, 2), "");
  EXPECT_EQ(crowded_text(info, {{values_of(crowded), "impossible"}}, 2), "");
  const std::string said = crowded_text(info, {{values_of(fits), ""}, {values_of(crowded), ""}}, 2);
  EXPECT_NE(said.find("1 of 2 points spin up to 9 threads on 2 cores"), std::string::npos) << said;
}

// The axes in the warning as one line, without the sentence before them.
std::string axes_in_warning(const std::string& experiment, const Values& given) {
  const ExperimentInfo info(experiment);
  Values values;
  for (const auto& [axis, owners] : info.axes().entries()) values[axis.name] = axis.standard;
  for (const auto& [name, value] : given) values[name] = value;
  std::string text = crowded_text(info, {{values, ""}}, 1);
  text = std::regex_replace(text, std::regex("\\s+"), " ");
  const std::string before = "adds to their latency.";
  return text.substr(text.find(before) + before.size());
}

TEST(ProgressLine, VerdictSaysWhetherADisturbedCellIsMeasuredAgain) {
  Json row{{"status", "invalid"}, {"cause", "disturbed"}, {"reason", "disturbed: others used 30 % of the CPU time"}};
  EXPECT_EQ(verdict_text(row), "will be measured again, because others used 30 % of the CPU time");
  row["stop"] = {{"reason", "disturbed"}};
  EXPECT_EQ(verdict_text(row), "not counted, because others used 30 % of the CPU time");
  EXPECT_EQ(verdict_text({{"status", "failed"}, {"cause", "error"}, {"reason", "EIO"}}), "failed: EIO");
}

TEST(ProgressLine, FiguresAndComparisonsAreShortAndReadable) {
  EXPECT_EQ(ExperimentInfo("storage").text("blocks_per_second", 2020), "2.02 k/s");
  EXPECT_EQ(ExperimentInfo("storage").text("blocks_per_second", 20), "20 /s");
  const Estimate once{100, {}}, low{1, 0.01}, high{140, 0.01}, wide{140, std::log(140.0)};
  EXPECT_EQ(comparison(high, low), "140 × less");
  EXPECT_EQ(comparison(low, high), "140 × more");
  EXPECT_EQ(comparison(low, wide), "unclear");
  EXPECT_EQ(comparison(low, once), "no interval");
  EXPECT_EQ(wide.spread_text(), " within 140 ×");
}

TEST(Crowding, WarningNamesTheAxesOfTheExperiment) {
  const std::string axes = " Axes that set the number of threads: ";
  EXPECT_EQ(axes_in_warning("handoff", {{"readers", std::uint64_t{2}}}), axes + "readers.");
  EXPECT_EQ(axes_in_warning("storage", {{"engine", "threads"}, {"threads", std::uint64_t{2}}}),
            axes + "depth, readers, threads.");
  EXPECT_EQ(axes_in_warning("feeding", {{"producers", std::uint64_t{4}}, {"workers", std::uint64_t{2}}}),
            axes + "producers, workers.");
  EXPECT_EQ(axes_in_warning("feeding", {}), "") << "no axis lowers the number of threads";
}

}  // namespace
}  // namespace feedrate::test
