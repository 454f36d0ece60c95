#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "common/error.hpp"
#include "experiments/feeding/axes.hpp"
#include "experiments/harness/load/mix.hpp"
#include "experiments/harness/load/schedule.hpp"

namespace feedrate::test {
namespace {

Point point_of(const std::string& arrivals, std::uint64_t rate) {
  Point point;
  point.arrivals = arrivals;
  point.rate = rate;
  return point;
}

/// Kolmogorov's D times sqrt(n) of the gaps against an exponential distribution with mean 1 / rate.
double distance_from_exponential(const Schedule& schedule, double rate) {
  std::vector<double> gaps;
  for (std::size_t i = 1; i < schedule.size(); ++i) {
    gaps.push_back(static_cast<double>(schedule.due_ns[i] - schedule.due_ns[i - 1]) * 1e-9);
  }
  std::sort(gaps.begin(), gaps.end());
  const auto n = static_cast<double>(gaps.size());
  double most = 0;
  for (std::size_t i = 0; i < gaps.size(); ++i) {
    const double expected = 1 - std::exp(-rate * gaps[i]), below = static_cast<double>(i) / n;
    most = std::max({most, std::abs(expected - below), std::abs(expected - below - 1 / n)});
  }
  return most * std::sqrt(n);
}
constexpr double kRarely =
    1.95;  // critical value of the Kolmogorov distribution, exceeded by one valid sample in a thousand

TEST(Schedule, PoissonArrivalsPassAKolmogorovSmirnovTest) {
  for (const std::uint64_t seed : {1, 2, 3}) {
    const Schedule schedule = make_schedule(point_of("poisson", 20'000), 2, seed);
    EXPECT_NEAR(static_cast<double>(schedule.size()), 40'000, 4 * std::sqrt(40'000.0));
    EXPECT_LT(distance_from_exponential(schedule, 20'000), kRarely);
    const Schedule long_one = make_schedule(point_of("poisson", 200'000), 2, seed);  // generated in several slices
    EXPECT_NEAR(static_cast<double>(long_one.size()), 400'000, 4 * std::sqrt(400'000.0));
    EXPECT_TRUE(std::is_sorted(long_one.due_ns.begin(), long_one.due_ns.end()));
    EXPECT_LT(distance_from_exponential(long_one, 200'000), kRarely);
  }
  EXPECT_GT(distance_from_exponential(make_schedule(point_of("constant", 20'000), 2, 1), 20'000), 10);
  EXPECT_GT(distance_from_exponential(make_schedule(point_of("poisson", 20'000), 2, 1), 21'000), kRarely);
}

TEST(Schedule, ScheduleDependsOnTheSeedButNotOnTheQueue) {
  const Point point = point_of("poisson", 10'000);
  EXPECT_EQ(make_schedule(point, 0.1, 7).due_ns, make_schedule(point, 0.1, 7).due_ns);
  EXPECT_NE(make_schedule(point, 0.1, 7).due_ns, make_schedule(point, 0.1, 8).due_ns);
  Point other = point;  // another queue gets the same arrivals
  other.queue = "null";
  other.window = 7;
  EXPECT_EQ(make_schedule(point, 0.1, 7).due_ns, make_schedule(other, 0.1, 7).due_ns);
}

TEST(Schedule, ConstantArrivalsAreEvenlySpaced) {
  const Schedule schedule = make_schedule(point_of("constant", 1000), 0.5, 1);
  ASSERT_EQ(schedule.size(), 500);
  for (std::size_t i = 0; i < schedule.size(); ++i) EXPECT_EQ(schedule.due_ns[i], i * 1'000'000);
  EXPECT_EQ(schedule.due_until(0), 1);
  EXPECT_EQ(schedule.due_until(999'999), 1);
  EXPECT_EQ(schedule.due_until(1'000'000), 2);
}

TEST(Schedule, BurstsPauseAndKeepTheMeanRate) {
  Point point = point_of("bursts", 50'000);
  point.burst_us = 1000;
  point.pause_us = 3000;
  const Schedule schedule = make_schedule(point, 2, 1);
  EXPECT_NEAR(static_cast<double>(schedule.size()), 100'000, 5 * std::sqrt(100'000.0));
  for (const auto due : schedule.due_ns) ASSERT_LT(due % 4'000'000, 1'000'000);
}

TEST(Schedule, SizesAndPrioritiesHaveTheirShares) {
  Point point = point_of("constant", 100'000);
  point.payload = 4096;
  point.payload_mix = "64:3,4Ki:1";
  point.priority_mix = "0:0.1,5:0.9";
  const Schedule schedule = make_schedule(point, 1, 1);
  ASSERT_EQ(schedule.payloads.size(), schedule.size());
  const auto small = std::count(schedule.payloads.begin(), schedule.payloads.end(), 64u);
  EXPECT_NEAR(static_cast<double>(small), 75'000, 700);
  EXPECT_EQ(small + std::count(schedule.payloads.begin(), schedule.payloads.end(), 4096u), 100'000);
  EXPECT_NEAR(static_cast<double>(std::count(schedule.priorities.begin(), schedule.priorities.end(), 0)), 10'000, 500);
  EXPECT_NEAR(schedule.mean_payload(1), 0.75 * 64 + 0.25 * 4096, 20);
}

TEST(Schedule, LognormalSizesHaveTheirMedianAndAreCapped) {
  Point point = point_of("constant", 100'000);
  point.payload = 8192;
  point.payload_mix = "lognormal:1Ki:1";
  Schedule schedule = make_schedule(point, 1, 1);
  std::sort(schedule.payloads.begin(), schedule.payloads.end());
  EXPECT_NEAR(schedule.payloads[50'000], 1024, 32);
  EXPECT_NEAR(schedule.payloads[84'134], 1024 * std::exp(1), 100);  // one sigma above
  EXPECT_EQ(schedule.payloads.back(), 8192);
}

class TraceFile : public testing::Test {
 protected:
  ~TraceFile() override { std::filesystem::remove(file_); }
  std::string write(const std::string& text) {
    std::ofstream(file_) << text;
    return file_;
  }
  std::string file_ = testing::TempDir() + "feedrate_trace_" + std::to_string(getpid());
};

TEST_F(TraceFile, CsvAndJsonLinesAreRead) {
  const Schedule csv = read_trace(write("time,payload,priority\n10.5,64,0\n10.5001,128,1\n10.6,0,0\n")).schedule;
  EXPECT_EQ(csv.due_ns, (std::vector<std::uint64_t>{0, 100'000, 100'000'000}));
  EXPECT_EQ(csv.payloads, (std::vector<std::uint32_t>{64, 128, 0}));
  EXPECT_EQ(csv.priorities, (std::vector<std::uint8_t>{0, 1, 0}));
  const std::string lines = "{\"time\": 1, \"workload\": \"echo\"}\n\n{\"time\": 1.25}\n";
  EXPECT_EQ(read_trace(write(lines)).schedule.due_ns, (std::vector<std::uint64_t>{0, 250'000'000}));
  EXPECT_EQ(read_trace(write(lines)).workload, "echo");
}

TEST_F(TraceFile, CommonVariantsOfCsvAreRead) {
  for (const char* text :
       {"\xEF\xBB\xBFtime,payload\r\n0,64\r\n0.001,128\r\n",                    // "CSV UTF-8" of a spreadsheet
        "time,timer,user,payload\n0,1,bob,64\n0.001,1,eve,128\n",               // columns that feedrate ignores
        "time,user,payload\n0,bob,64\n0.001,\"a,b\",128",                       // a comma in quotes
        "\"time\" , \"payload\"\n\n0 , 64\n\t0.001,\"128\"\n\n",                // spaces, quotes, blank lines
        "time,said,payload\n0,\"two\nlines\",64\n0.001,\"a \"\"b\"\"\",128\n",  // line break and quotes in a value
        "time,payload\r0,64\r0.001,128\r"}) {
    const Schedule schedule = read_trace(write(text)).schedule;
    EXPECT_EQ(schedule.due_ns, (std::vector<std::uint64_t>{0, 1'000'000})) << text;
    EXPECT_EQ(schedule.payloads, (std::vector<std::uint32_t>{64, 128})) << text;
  }
  EXPECT_EQ(read_trace(write("\xEF\xBB\xBF{\"time\": 1}\r\n{\"time\": 2}\r\n")).schedule.size(), 2u);
}

TEST_F(TraceFile, ErrorsNameTheLine) {
  const auto error_of = [&](const std::string& text) {
    try {
      read_trace(write(text));
    } catch (const BadInput& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  for (const auto& [text, part] : std::vector<std::pair<std::string, std::string>>{
           {"", "at least one arrival"},
           {"time\n2\n1\n", "line 3: the time is before"},
           {"time\n-1\n", "line 2: invalid time '-1'"},
           {"time,payload\n1,64\n2\n", "line 3: 1 values; the header has 2"},
           {"time,payload\n1,1e12\n", "line 2: invalid payload"},
           {"{\"time\": 1, \"payload\": 1}\n{\"time\": 2}\n", "line 2: payload must be in all lines"},
           {"time;payload\n0;64\n", "line 1: values are separated by semicolons"},
           {"time\tpayload\n0\t64\n", "line 1: values are separated by tabs"},
           {"time,payload\n\"0,5\",64\n",
            "line 2: invalid time '0,5'; allowed: a number from 0 to 10000000000, with a decimal point"},
           {"time\n1\n\"2\n", "unterminated quote"},
           {"time\n\"1\"2\n", "line 2: a quote within a value"},
           {std::string("\xFF\xFEt\0i\0", 6), "line 1: the file is UTF-16"},
           {"{\"at\": 1}\n", "line 1: missing time"},
           {std::string("time\n0.\0001\n", 10), "line 2: the line has a NUL byte"},
           {std::string("{\"time\": 0}\0\n", 13), "line 1: the line has a NUL byte"},
           {"time,payload,payload\n0,64,32\n", "line 1: column 'payload' appears twice"},
           {"time,payload\n0,64.9\n", "line 2: invalid payload '64.9'; allowed: a whole number"},
           {"time,priorty\n0,1\n", "line 1: unknown column 'priorty'; did you mean priority?"},
           {"time,Payload\n0,64\n", "line 1: unknown column 'Payload'; did you mean payload?"},
           {"{\"time\": 0, \"Payload\": 64}\n", "line 1: unknown column 'Payload'"},
           {"\x1F\x8B\x08", "line 1: the file is compressed"},
           {"{broken\n", "line 1: not a JSON object"}}) {
    EXPECT_NE(error_of(text).find(part), std::string::npos) << text << ": " << error_of(text);
  }
}

TEST_F(TraceFile, TraceIsReplayedAsRecordedOrAtAnotherRate) {
  Point point = point_of("trace", 0);
  point.trace_file = write("time\n0\n0.1\n0.4\n1\n");
  EXPECT_EQ(make_schedule(point, 10, 1).due_ns.back(), 1'000'000'000);
  EXPECT_DOUBLE_EQ(make_schedule(point, 10, 1).seconds, 4.0 / 3) << "includes the gap after the last arrival";
  EXPECT_EQ(make_schedule(point, 0.4, 1).size(), 3) << "cut off at the given seconds";
  point.rate = 8;  // four in half a second
  EXPECT_EQ(make_schedule(point, 10, 1).due_ns, (std::vector<std::uint64_t>{0, 50'000'000, 200'000'000, 500'000'000}));
}

TEST_F(TraceFile, TraceRaisesThePayloadAndMustMatchTheWorkload) {
  const auto device = open_device("cpu", 0);
  Point point = point_of("trace", 0);
  point.payload = 16;
  point.trace_file = write("time,payload,workload\n0,16,echo\n0.1,512,echo\n");
  EXPECT_EQ(resolve(point, *device).impossible, "");
  EXPECT_EQ(resolve(point, *device).point.payload, 512);
  point.workload = "vecadd";
  EXPECT_NE(resolve(point, *device).impossible.find("the trace is of workload echo"), std::string::npos);
}

TEST(Load, IncompatibleLoadOptionsAreRejected) {
  const auto device = open_device("cpu", 0);
  const auto why = [&](const std::string& arrivals, std::uint64_t rate) {
    return resolve(point_of(arrivals, rate), *device).impossible;
  };
  EXPECT_EQ(why("closed", 0), "");
  EXPECT_EQ(why("poisson", 10), "");
  EXPECT_EQ(why("closed", 10), "") << "a sweep may combine both";
  EXPECT_NE(why("poisson", 0).find("needs --rate"), std::string::npos);
  EXPECT_NE(why("bursts", 10).find("--burst-us"), std::string::npos);
  EXPECT_NE(why("trace", 0).find("--trace-file"), std::string::npos);
}

TEST(Load, AxesThatDoNotApplyDoNotDistinguishPoints) {
  const auto device = open_device("cpu", 0);
  Point closed, other;
  other.payload_mix = "64:1,128:1";
  other.rate = 7;
  other.burst_us = 5;
  EXPECT_EQ(resolve(closed, *device).point, resolve(other, *device).point);
}

TEST(Schedule, TooManyArrivalsAreRejected) {
  EXPECT_THROW(make_schedule(point_of("poisson", 1'000'000'000), 86400, 1), BadInput);
  Point rare = point_of("bursts", 1'000'000);
  rare.burst_us = 1000;
  rare.pause_us = 999'000;
  EXPECT_NEAR(static_cast<double>(make_schedule(rare, 1, 1).size()), 1e6, 5000);
}

TEST(PayloadMix, InvalidMixesAreRejected) {
  for (const char* text :
       {"", "64", "64:", "64:0", "64:-1", "x:1", "lognormal:1Ki", "lognormal:0:1", "lognormal:1Ki:0"}) {
    EXPECT_THROW(parse_payload_mix(text, 4096), BadInput) << text;
  }
  EXPECT_THROW(parse_priority_mix("8:1"), BadInput);
}

}  // namespace
}  // namespace feedrate::test
