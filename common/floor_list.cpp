#include "common/floor_list.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstdint>

#include "common/clock.hpp"
#include "common/error.hpp"

namespace feedrate {

void FloorList::add(std::string name, std::string unit, std::string description,
                    const std::function<double()>& measure) {
  if (std::ranges::any_of(floors_, [&](const Floor& known) { return known.name == name; })) return;
  Floor floor{std::move(name), 0, std::move(unit), std::move(description), utc_now(), 0};
  if (!measured_) return floors_.push_back(std::move(floor));
  const auto start = now_ns();
  try {
    floor.value = measure();
  } catch (const Failure& failure) {  // a broken device will show in the cells, too
    spdlog::warn("the floor {} is left out: {}", floor.name, failure.what());
    return;
  }
  floor.seconds = static_cast<double>(now_ns() - start) / 1e9;
  floors_.push_back(std::move(floor));
}

double median_ns(unsigned n, const std::function<void()>& body) {
  for (unsigned i = 0; i < n / 10; ++i) body();
  std::vector<std::uint64_t> times(n);
  for (auto& time : times) {
    const auto start = now_ns();
    body();
    time = now_ns() - start;
  }
  const auto middle = times.begin() + n / 2;
  std::nth_element(times.begin(), middle, times.end());
  return static_cast<double>(*middle);
}

double per_second(double seconds, const std::function<void()>& body) {
  body();
  std::uint64_t runs = 0;
  const auto start = now_ns(), end = start + static_cast<std::uint64_t>(seconds * 1e9);
  auto now = start;
  for (; now < end; now = now_ns(), ++runs) body();
  return static_cast<double>(runs) / (static_cast<double>(now - start) / 1e9);
}

}  // namespace feedrate
