#include <gtest/gtest.h>

#include "experiments/overlap/stage_times.hpp"

namespace feedrate::overlap {
namespace {

TEST(Calibration, CalibrationFindsTheRoundsForACost) {
  const auto device = open_cpu_device();
  Calibration calibration(*device);
  const std::uint32_t some = calibration.rounds(StageRole::transform, 4096, 1, 10e6);
  const std::uint32_t more = calibration.rounds(StageRole::transform, 4096, 1, 100e6);
  EXPECT_GT(some, 1u);
  // Without the time of a launch and other work on the machine, the ratio would be 10.
  EXPECT_GT(more, 4.0 * some);
  EXPECT_LT(more, 25.0 * some);
  EXPECT_EQ(calibration.rounds(StageRole::transform, 4096, 1, 0), 1u);
}

}  // namespace
}  // namespace feedrate::overlap
