#include "common/limits/limit_list.hpp"

#include <gtest/gtest.h>
#include <spdlog/sinks/sink.h>
#include <spdlog/spdlog.h>

#include <memory>

#include "common/error.hpp"

namespace feedrate {
namespace {

TEST(LimitList, ReadsEachLimitOncePerRoundAndKeepsAllReadings) {
  LimitList list;
  double next = 0;
  const auto read = [&] {
    for (int twice = 0; twice < 2; ++twice) list.add({.name = "a_ns", .method = "grows"}, [&] { return next; });
  };
  for (const double value : {5.0, 1.0, 9.0, 2.0, 3.0}) {
    next = value;
    list.begin_round();
    read();
  }
  ASSERT_EQ(list.limits().size(), 1u);
  const Limit& limit = list.limits()[0];
  EXPECT_EQ(limit.readings, (std::vector<double>{5, 1, 9, 2, 3}));
  EXPECT_EQ(limit.median(), 3);
  EXPECT_EQ(limit.least(), 1);
  EXPECT_EQ(limit.greatest(), 9);
}

TEST(LimitList, SkipsFailedReadings) {
  LimitList list;
  for (const bool fails : {false, true, false}) {
    list.begin_round();
    list.add({.name = "a_ns"}, [&]() -> double {
      if (fails) throw Failure("planted");
      return 7;
    });
  }
  EXPECT_EQ(list.limits().at(0).readings.size(), 2u);
}

/// Keeps the texts of all messages.
struct KeptMessages final : spdlog::sinks::sink {
  void log(const spdlog::details::log_msg& message) override {
    texts.emplace_back(message.payload.data(), message.payload.size());
  }
  void flush() override {}
  void set_pattern(const std::string&) override {}
  void set_formatter(std::unique_ptr<spdlog::formatter>) override {}
  std::vector<std::string> texts;
};

TEST(LimitList, WarnsOncePerCause) {
  const auto kept = std::make_shared<KeptMessages>();
  const auto usual = spdlog::default_logger();
  spdlog::set_default_logger(std::make_shared<spdlog::logger>("test", kept));
  LimitList list;
  for (int round = 0; round < 5; ++round) {
    list.begin_round();
    for (const char* name : {"a_ns", "b_ns"}) list.add({.name = name}, []() -> double { throw Failure("no program"); });
    list.add({.name = "c_ns"}, []() -> double { throw Failure("no room"); });
  }
  spdlog::set_default_logger(usual);
  ASSERT_EQ(kept->texts.size(), 2u);
  EXPECT_NE(kept->texts[0].find("a_ns is left out: no program"), std::string::npos) << kept->texts[0];
  EXPECT_NE(kept->texts[1].find("c_ns is left out: no room"), std::string::npos) << kept->texts[1];
  EXPECT_TRUE(list.limits().empty());
}

TEST(LimitList, ListsLimitsWithoutMeasuring) {
  LimitList list(false);
  list.add({.name = "a_ns", .method = "text"}, []() -> double { throw Failure("must not be measured"); });
  EXPECT_EQ(list.limits().at(0).method, "text");
  EXPECT_TRUE(list.limits()[0].readings.empty());
}

TEST(LimitList, SameNameInTwoScopesMakesTwoLimits) {
  LimitList list;
  for (const unsigned gpu : {0u, 1u}) {
    list.add({.name = "a_per_second", .scope = gpu_scope(gpu)}, [gpu] { return 1.0 + gpu; });
  }
  ASSERT_EQ(list.limits().size(), 2u);
  EXPECT_EQ(list.limits()[1].median(), 2);
}

TEST(LimitList, MedianReadingEndsAtItsTimeLimit) {
  unsigned calls = 0;
  EXPECT_GE(median_ns(100, [&] { ++calls; }), 0);
  EXPECT_EQ(calls, 110u) << "100 timings after 10 warm-up calls";
  calls = 0;
  median_ns(
      1'000'000, [&] { ++calls; }, 0);
  EXPECT_LE(calls, 11u) << "with a time limit of 0, only the minimum number of calls";
}

}  // namespace
}  // namespace feedrate
