#pragma once

namespace feedrate {

enum class Verdict { open, sustained, not_sustained, undecided };

/// Whether a rate is sustained, decided by its tries one after the other: Wald's sequential probability ratio test
/// (Sequential Tests of Statistical Hypotheses, 1945) between "the bound is kept in at most 70 % of tries" and "in at
/// least 95 %", with an error of 5 % each way. A try that keeps the bound and one that misses it count alike, whatever
/// the others said: ten that keep it in a row decide, or two that miss it. A rate between the two shares may stay
/// undecided.
class RateTest {
 public:
  static constexpr double kAtMost = 0.70, kAtLeast = 0.95, kError = 0.05;
  static constexpr unsigned kMostTries = 40;

  void add(bool kept);
  /// The first decision holds, whatever is added later.
  Verdict verdict() const { return verdict_; }
  unsigned kept() const { return kept_; }
  unsigned tries() const { return tries_; }

 private:
  double evidence_ = 0;  // the logarithm of the likelihood ratio, for "at least"
  unsigned kept_ = 0, tries_ = 0;
  Verdict verdict_ = Verdict::open;
};

}  // namespace feedrate
