#include "common/limits/limit_list.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstdint>

#include "common/clock.hpp"
#include "common/error.hpp"

namespace feedrate {

double Limit::median() const {
  std::vector<double> sorted = readings;
  std::ranges::sort(sorted);
  return sorted.empty() ? 0 : (sorted[(sorted.size() - 1) / 2] + sorted[sorted.size() / 2]) / 2;
}
double Limit::least() const { return readings.empty() ? 0 : *std::ranges::min_element(readings); }
double Limit::greatest() const { return readings.empty() ? 0 : *std::ranges::max_element(readings); }

void LimitList::add(Limit limit, const std::function<double()>& measure) {
  const auto same = [&](const Limit& known) { return known.name == limit.name && known.scope == limit.scope; };
  const auto known = std::ranges::find_if(limits_, same);
  const auto at = static_cast<std::size_t>(known - limits_.begin());
  if (known != limits_.end() && (!measures_ || read_in_[at] == round_)) return;
  limit.started = utc_now();
  const auto start = now_ns();
  std::vector<double> reading;
  try {
    if (measures_) reading.push_back(measure());
  } catch (const Failure& failure) {  // a broken device also makes the cells fail
    if (causes_.insert(failure.what()).second) {
      spdlog::warn("limit {} is left out: {} (said once, also if other limits fail for this reason)", limit.name,
                   failure.what());
    }
    return;
  }
  if (known == limits_.end()) {
    limits_.push_back(std::move(limit));
    read_in_.push_back(0);
  }
  Limit& read = limits_[at];
  read.seconds += static_cast<double>(now_ns() - start) / 1e9;
  read.readings.insert(read.readings.end(), reading.begin(), reading.end());
  read_in_[at] = round_;
}

double median_ns(unsigned n, const std::function<void()>& body, double longest_seconds) {
  constexpr std::size_t kLeast = 10;
  const auto begun = now_ns();
  const auto over = [&] { return static_cast<double>(now_ns() - begun) > longest_seconds * 1e9; };
  for (unsigned i = 0; i < n / 10 && !over(); ++i) body();
  std::vector<std::uint64_t> times;
  times.reserve(n);
  while (times.size() < n && (times.size() < kLeast || !over())) {
    const auto start = now_ns();
    body();
    times.push_back(now_ns() - start);
  }
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
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
