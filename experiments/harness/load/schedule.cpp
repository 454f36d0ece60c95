#include "experiments/harness/load/schedule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "common/error.hpp"
#include "common/hash.hpp"
#include "common/threads/threads.hpp"
#include "experiments/harness/load/mix.hpp"

namespace feedrate {
namespace {

/// Uniform numbers in (0, 1], the same on every machine; the results of standard distributions depend on the library.
class Uniform {
 public:
  Uniform(std::uint64_t seed, std::string_view purpose, std::uint64_t part = 0)
      : engine_(mix64(mix64(seed) + part) ^ hash64(purpose)) {}
  double operator()() { return (static_cast<double>(engine_() >> 11) + 1) * 0x1p-53; }

 private:
  std::mt19937_64 engine_;
};

constexpr double kMoment = 0.01;  // seconds; length of a trace whose arrivals are all simultaneous

std::vector<std::uint64_t> constant(double rate, double seconds) {
  std::vector<std::uint64_t> due(static_cast<std::size_t>(rate * seconds));
  for (std::size_t i = 0; i < due.size(); ++i) due[i] = static_cast<std::uint64_t>(static_cast<double>(i) * 1e9 / rate);
  return due;
}

/// Poisson arrivals at `rate` for `seconds` on a time axis that `place` maps to the phase's time. Arrivals in different
/// time slices are independent, so each slice has its own random numbers and threads share the slices. A single thread
/// would take seconds for hundreds of millions of messages.
template <class Place>
std::vector<std::uint64_t> poisson(double rate, double seconds, std::uint64_t seed, Place&& place) {
  constexpr double kSlice = 1 << 16;  // mean number of messages
  const double length = kSlice / rate;
  std::vector<std::vector<std::uint64_t>> slices(static_cast<std::size_t>(std::ceil(seconds / length)));
  in_parallel(slices.size(), [&](std::size_t i) {
    const double begin = static_cast<double>(i) * length, end = std::min(seconds, static_cast<double>(i + 1) * length);
    const double mean = rate * (end - begin);
    std::vector<std::uint64_t> slice;  // local to this thread: neighbours in `slices` share cache lines
    slice.reserve(static_cast<std::size_t>(mean + 4 * std::sqrt(mean)));
    Uniform uniform(seed, "arrivals", i);
    for (double t = begin - std::log(uniform()) / rate; t < end; t -= std::log(uniform()) / rate) {
      slice.push_back(static_cast<std::uint64_t>(place(t) * 1e9));
    }
    slices[i] = std::move(slice);
  });
  std::vector<std::size_t> begins{0};
  for (const auto& slice : slices) begins.push_back(begins.back() + slice.size());
  std::vector<std::uint64_t> due(begins.back());
  in_parallel(slices.size(), [&](std::size_t i) {
    std::copy(slices[i].begin(), slices[i].end(), due.begin() + static_cast<std::ptrdiff_t>(begins[i]));
  });
  return due;
}

std::vector<std::uint64_t> bursts(const LoadShape& shape, double seconds, std::uint64_t seed) {
  const double on = static_cast<double>(shape.burst_us) * 1e-6, off = static_cast<double>(shape.pause_us) * 1e-6;
  const double rate = static_cast<double>(shape.rate) * (on + off) / on;
  const double whole = std::floor(seconds / (on + off));
  const double bursting = whole * on + std::min(on, seconds - whole * (on + off));
  return poisson(rate, bursting, seed, [=](double t) {
    const double burst = std::floor(t / on);
    return burst * (on + off) + (t - burst * on);
  });
}

}  // namespace

std::uint64_t Schedule::due_until(std::uint64_t ns) const {
  return static_cast<std::uint64_t>(std::upper_bound(due_ns.begin(), due_ns.end(), ns) - due_ns.begin());
}

double Schedule::mean_payload(std::size_t payload) const {
  if (payloads.empty()) return static_cast<double>(payload);
  return std::accumulate(payloads.begin(), payloads.end(), 0.0) / static_cast<double>(payloads.size());
}

Schedule make_schedule(const LoadShape& shape, double seconds, std::uint64_t seed) {
  Schedule schedule;
  const auto rate = static_cast<double>(shape.rate);
  if (shape.arrivals != "trace" && rate * seconds > static_cast<double>(kMaxArrivals)) {
    throw BadInput("--rate", std::to_string(shape.rate),
                   fmt::format("at most {:.0f} for {} s, because a schedule has at most {} messages",
                               static_cast<double>(kMaxArrivals) / seconds, seconds, kMaxArrivals));
  }
  if (shape.arrivals == "trace") {
    schedule = read_trace(shape.trace_file).schedule;
    const double length = static_cast<double>(schedule.due_ns.back()) * 1e-9;
    const double stretch = shape.rate == 0 || length == 0 ? 1 : static_cast<double>(schedule.size()) / rate / length;
    for (auto& due : schedule.due_ns) due = static_cast<std::uint64_t>(static_cast<double>(due) * stretch);
    const auto kept = schedule.due_until(static_cast<std::uint64_t>(seconds * 1e9));
    schedule.due_ns.resize(kept);
    if (!schedule.payloads.empty()) schedule.payloads.resize(kept);
    if (!schedule.priorities.empty()) schedule.priorities.resize(kept);
    // The gap after the last message is part of the trace; simultaneous arrivals have no gaps.
    const auto n = static_cast<double>(schedule.size());
    seconds = std::min(seconds, length == 0 ? kMoment : length * stretch * (n > 1 ? n / (n - 1) : 1));
  } else if (shape.arrivals == "constant") {
    schedule.due_ns = constant(rate, seconds);
  } else if (shape.arrivals == "bursts") {
    schedule.due_ns = bursts(shape, seconds, seed);
  } else {
    schedule.due_ns = poisson(rate, seconds, seed, [](double t) { return t; });
  }
  schedule.seconds = seconds;
  if (schedule.payloads.empty() && shape.payload_mix != kNoMix) {
    Uniform uniform(seed, "payloads");
    const Mix mix = parse_payload_mix(shape.payload_mix, shape.payload);
    schedule.payloads.resize(schedule.size());
    for (auto& payload : schedule.payloads) payload = static_cast<std::uint32_t>(mix.draw(uniform));
  }
  if (schedule.priorities.empty() && shape.priority_mix != kNoMix) {
    Uniform uniform(seed, "priorities");
    const Mix mix = parse_priority_mix(shape.priority_mix);
    schedule.priorities.resize(schedule.size());
    for (auto& priority : schedule.priorities) priority = static_cast<std::uint8_t>(mix.draw(uniform));
  }
  return schedule;
}

std::string why_invalid_shape(const LoadShape& shape) {
  if (!is_open(shape)) return "";
  const bool traced = shape.arrivals == "trace";
  if (traced && shape.trace_file == kNoMix) return "--arrivals trace needs --trace-file, a CSV or JSONL file";
  if (!traced && shape.rate == 0) return fmt::format("--arrivals {} needs --rate, a number per second", shape.arrivals);
  if (shape.arrivals == "bursts" && shape.burst_us == 0)
    return "--arrivals bursts needs --burst-us, the length of a burst";
  return "";
}

const Axes<LoadShape>& load_axes() {
  constexpr double kMaxMicroseconds = 3'600'000'000;
  static const auto axes =
      Axes<LoadShape>()
          .word("arrivals", &LoadShape::arrivals, {"closed", "constant", "poisson", "bursts", "trace"},
                "closed = each result releases the next request; else requests are due by a schedule")
          .number("rate", &LoadShape::rate, {0, 1'000'000'000},
                  "requests per second that are due, of all senders together; 0 = closed load, or a trace's own")
          .number("burst-us", &LoadShape::burst_us, {0, kMaxMicroseconds}, "arrivals bursts: length of a burst")
          .number("pause-us", &LoadShape::pause_us, {0, kMaxMicroseconds}, "arrivals bursts: time between two bursts")
          .text(
              "trace-file", &LoadShape::trace_file, [](const std::string& value) { read_trace(value); },
              "arrivals trace: CSV or JSONL with time (s) and, optionally, payload, priority, workload");
  return axes;
}

}  // namespace feedrate
