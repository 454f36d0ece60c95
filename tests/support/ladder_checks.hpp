#pragma once
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/error.hpp"
#include "kernels/ladder/ladder.hpp"

namespace feedrate::test {

/// Names of a ladder's rungs and peers for a kind of device.
inline std::vector<std::string> rungs_for(const std::string& ladder, const std::string& device) {
  std::vector<std::string> names;
  for (const ladder::RungInfo& rung : ladder::Ladders::instance().get("", ladder).rungs()) {
    if (rung.text.device == device) names.push_back(rung.name);
  }
  return names;
}

/// Runs a rung on many problems of its ladder, and checks each result.
class LadderChecks {
 public:
  LadderChecks(Device& device, std::string ladder, std::string rung)
      : device_(device), ladder_(std::move(ladder)), rung_(std::move(rung)) {}

  /// Solves the problem. A rung may instead say that it does not support it.
  void solves(const Values& values) {
    const auto problem = ladder::Ladders::instance().get("", ladder_).make(values, device_);
    if (!problem->why_unsupported(rung_).empty()) return;
    problem->prepare(2, 7);
    std::unique_ptr<ladder::Runner> runner;
    try {
      runner = problem->make(rung_);
    } catch (const Failure&) {  // a library need not support every size
      if (is_peer()) return;
      throw;
    }
    ++solved_;
    for (const std::size_t copy : {0, 1}) {
      const ladder::ProductVerdict verdict = problem->verify(rung_, *runner, copy);
      EXPECT_EQ(verdict.wrong, "") << rung_ << ": " << text_of(values);
      if (!verdict.wrong.empty()) return;
    }
  }
  unsigned solved() const { return solved_; }

  static Values sizes(std::uint64_t m, std::uint64_t n, std::uint64_t k) { return {{"m", m}, {"n", n}, {"k", k}}; }
  static Values with(Values values, const Values& more) {
    for (const auto& [name, value] : more) values[name] = value;
    return values;
  }
  static Value word(const char* text) { return std::string(text); }

 private:
  bool is_peer() const {
    for (const ladder::RungInfo& rung : ladder::Ladders::instance().get("", ladder_).rungs()) {
      if (rung.name == rung_) return rung.text.is_peer();
    }
    return false;
  }
  static std::string text_of(const Values& values) {
    std::string text;
    for (const auto& [name, value] : values) text += name + "=" + feedrate::text_of(value) + " ";
    return text;
  }

  Device& device_;
  std::string ladder_, rung_;
  unsigned solved_ = 0;
};

/// Problems that broke other implementations (sizes around tiles, K = 8, 72 and 136, unaligned rows), and every option.
inline void check_matmul(LadderChecks& checks, const char* dtype) {
  using Checks = LadderChecks;
  const auto solve = [&](Values values, const Values& more = {}) {
    values["dtype"] = Checks::word(dtype);
    checks.solves(Checks::with(std::move(values), more));
  };
  const Value whole = Checks::word("whole");
  for (const auto& [m, n, k] : std::vector<std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>>{{1, 1, 1},
                                                                                                    {0, 5, 3},
                                                                                                    {5, 0, 3},
                                                                                                    {5, 3, 0},
                                                                                                    {127, 129, 8},
                                                                                                    {129, 127, 72},
                                                                                                    {64, 192, 136},
                                                                                                    {1, 300, 100},
                                                                                                    {300, 1, 100},
                                                                                                    {128, 256, 512},
                                                                                                    {17, 200, 264}}) {
    solve(Checks::sizes(m, n, k));
    solve(Checks::sizes(m, n, k), {{"inputs", whole}});
  }
  for (const char* layout : {"nn", "nt", "tn", "tt"}) {
    solve(Checks::sizes(70, 90, 50), {{"layout", Checks::word(layout)}, {"inputs", whole}});
    solve(Checks::sizes(70, 90, 50),
          {{"layout", Checks::word(layout)}, {"pad", std::uint64_t{3}}, {"batch", std::uint64_t{3}}});
    solve(
        Checks::sizes(64, 128, 64),
        {{"layout", Checks::word(layout)}, {"pad", std::uint64_t{16}}, {"batch", std::uint64_t{2}}, {"inputs", whole}});
  }
  for (const char* epilogue : {"bias", "bias_gelu"}) {
    solve(Checks::sizes(65, 136, 80), {{"epilogue", Checks::word(epilogue)}, {"scale", 0.5}});
  }
  solve(Checks::sizes(33, 65, 2048), {{"inputs", Checks::word("positive")}});
}

/// Every pass of a linear layer, with and without GELU, at sizes around tiles.
inline void check_linear(LadderChecks& checks, const char* dtype) {
  const auto sizes = [](std::uint64_t rows, std::uint64_t in, std::uint64_t out) {
    return Values{{"rows", rows}, {"in-features", in}, {"out-features", out}};
  };
  for (const char* pass : {"forward", "backward_input", "backward_weight", "backward_bias", "all"}) {
    for (const char* activation : {"gelu", "none"}) {
      for (const Values& values : {sizes(1, 1, 1), sizes(130, 64, 72), sizes(64, 136, 40), sizes(33, 17, 9)}) {
        for (const char* inputs : {"normal", "whole"}) {
          checks.solves(LadderChecks::with(values, {{"pass", LadderChecks::word(pass)},
                                                    {"activation", LadderChecks::word(activation)},
                                                    {"inputs", LadderChecks::word(inputs)},
                                                    {"dtype", LadderChecks::word(dtype)}}));
        }
      }
    }
  }
}

}  // namespace feedrate::test
