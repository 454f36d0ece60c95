#pragma once

namespace feedrate {

enum class Verdict { open, sustained, not_sustained, undecided };

/// Decides from successive tries whether a rate is sustained: Wald's sequential probability ratio test (Sequential
/// Tests of Statistical Hypotheses, 1945) between "the bound is met in at most 70 % of tries" and "in at least 95 %",
/// with an error of 5 % each way. The evidence of a try does not depend on earlier tries. Ten tries in a row that meet
/// the bound decide, or two that miss it. A rate between the two shares may remain undecided.
class RateTest {
 public:
  static constexpr double kAtMost = 0.70, kAtLeast = 0.95, kError = 0.05;
  static constexpr unsigned kMaxTries = 40;

  void add(bool kept);
  /// The first decision is final; later tries do not change it.
  Verdict verdict() const { return verdict_; }
  unsigned kept() const { return kept_; }
  unsigned tries() const { return tries_; }

 private:
  double evidence_ = 0;  // logarithm of the likelihood ratio in favour of "at least"
  unsigned kept_ = 0, tries_ = 0;
  Verdict verdict_ = Verdict::open;
};

}  // namespace feedrate
