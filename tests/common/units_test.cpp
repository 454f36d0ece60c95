#include "common/units.hpp"

#include <gtest/gtest.h>

#include "common/error.hpp"

namespace feedrate {
namespace {

using Expanded = std::vector<std::string>;

TEST(Units, CountsAcceptSuffixes) {
  EXPECT_EQ(parse_count("--n", "0"), 0u);
  EXPECT_EQ(parse_count("--n", "4Ki"), 4096u);
  EXPECT_EQ(parse_count("--n", "2M"), 2'000'000u);
  EXPECT_EQ(parse_count("--n", "1Gi"), std::uint64_t{1} << 30);
  for (const char* wrong : {"", "-1", "1.5", "4KB", "Ki", "99999999999999999999", "99999999999G", " 1"}) {
    EXPECT_THROW(parse_count("--n", wrong), BadInput) << wrong;
  }
}

TEST(Units, ValuesAcceptListsRangesAndPowers) {
  EXPECT_EQ(expand_values("--n", "a,b"), (Expanded{"a", "b"}));
  EXPECT_EQ(expand_values("--n", "1..4"), (Expanded{"1", "2", "3", "4"}));
  EXPECT_EQ(expand_values("--n", "0..10:5"), (Expanded{"0", "5", "10"}));
  EXPECT_EQ(expand_values("--n", "pow2:6..10:2"), (Expanded{"64", "256", "1024"}));
  EXPECT_EQ(expand_values("--n", "64,pow2:1..2,9"), (Expanded{"64", "2", "4", "9"}));
  for (const char* wrong : {"", "1,,2", "4..1", "1..4:0", "pow2:6", "pow2:1..99", "1..99999999"}) {
    EXPECT_THROW(expand_values("--n", wrong), BadInput) << wrong;
  }
}

TEST(Units, ErrorsNameTheOptionAndTheValue) {
  try {
    parse_count("--payload", "banana");
    FAIL();
  } catch (const BadInput& error) {
    EXPECT_NE(std::string(error.what()).find("--payload"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("banana"), std::string::npos);
  }
}

TEST(Units, NumbersAreFormattedWithUnits) {
  EXPECT_EQ(format_count(65536), "64Ki");
  EXPECT_EQ(format_count(100), "100");
  EXPECT_EQ(format_si(1.234e6), "1.23 M");
  EXPECT_EQ(format_rate(1.234e6), "1.23 M msg/s");
  EXPECT_EQ(format_rate(12), "12 msg/s");
  EXPECT_EQ(format_ns(12'340), "12.3 µs");
}

TEST(Units, NoFigureIsInScientificNotation) {
  EXPECT_EQ(format_si(999.4), "999 ");
  EXPECT_EQ(format_si(999.6), "1 k");
  EXPECT_EQ(format_si(999.9e9), "1 T");
  EXPECT_EQ(format_si(1979e12), "1979 T");
  EXPECT_EQ(format_ns(999.7), "1 µs");
  EXPECT_EQ(format_ns(1234e9), "1234 s");
}

}  // namespace
}  // namespace feedrate
