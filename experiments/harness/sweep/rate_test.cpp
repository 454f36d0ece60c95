#include "experiments/harness/sweep/rate_test.hpp"

#include <cmath>

namespace feedrate {

void RateTest::add(bool kept) {
  static const double kKept = std::log(kAtLeast / kAtMost), kMissed = std::log((1 - kAtLeast) / (1 - kAtMost));
  static const double kEnough = std::log((1 - kError) / kError);
  evidence_ += kept ? kKept : kMissed;
  kept_ += kept ? 1 : 0;
  ++tries_;
  if (verdict_ != Verdict::open) return;
  if (evidence_ >= kEnough) verdict_ = Verdict::sustained;
  if (evidence_ <= -kEnough) verdict_ = Verdict::not_sustained;
  if (verdict_ == Verdict::open && tries_ >= kMaxTries) verdict_ = Verdict::undecided;
}

}  // namespace feedrate
