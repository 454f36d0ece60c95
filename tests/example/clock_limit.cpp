// A limit of the machine in one file: this registration adds it to rows, bounds, the catalogue and reports.
#include <chrono>

#include "common/limits/device_limit.hpp"
#include "common/limits/limit_list.hpp"

namespace feedrate {
namespace {

double clock_readings(LimitProbe&) {
  return per_second(kReadingSeconds, [] { static_cast<void>(std::chrono::steady_clock::now()); });
}

const DeviceLimitRegistration registered("clock_readings_per_second",
                                         {kPerSecond, "readings of the clock by one thread", on_host, clock_readings});

}  // namespace
}  // namespace feedrate
