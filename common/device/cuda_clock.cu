#include "common/device/cuda_clock.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/clock.hpp"
#include "common/device/cuda_check.hpp"
#include "common/device/device_clock.hpp"

namespace feedrate {

/// Each side writes its own cache line.
struct ClockWords {
  alignas(128) std::uint64_t host;    ///< the host's time, updated continuously
  alignas(128) std::uint64_t device;  ///< the GPU's time, updated likewise
  std::int64_t max_ahead;             ///< written at the end: the maximum lead of the host's clock that the GPU saw
  std::uint64_t ended;
};

namespace {

constexpr unsigned kExchanges = 2000;
constexpr std::uint64_t kLongestNs = 100'000'000;  // maximum wait for the host, which may have stopped
constexpr std::uint64_t kTooLongNs = 1'000'000'000;
constexpr unsigned kTries = 3;
constexpr unsigned kAnchors = 20;

__global__ void exchange(ClockWords* words) {
  std::uint64_t heard = device_clock_ns();
  std::int64_t max_ahead = std::numeric_limits<std::int64_t>::min();
  std::uint64_t seen = 0;
  for (unsigned i = 0; i < kExchanges;) {
    const std::uint64_t host = SystemMemory::load_acquire(words->host);
    if (host == seen) {
      if (device_clock_ns() - heard > kLongestNs) break;
      continue;
    }
    seen = host;
    const std::uint64_t now = device_clock_ns();  // read after `host` has arrived: the branch waited for it
    max_ahead = max(max_ahead, static_cast<std::int64_t>(host - now));
    SystemMemory::store_relaxed(words->device, now);
    heard = now;
    ++i;
  }
  words->max_ahead = max_ahead;
  SystemMemory::store_release(words->ended, 1);
}

__global__ void show(ClockWords* words) { SystemMemory::store_relaxed(words->device, device_clock_ns()); }

cudaEvent_t timing_event() {
  cudaEvent_t event = nullptr;
  check(cudaEventCreate(&event), "cudaEventCreate");
  return event;
}

}  // namespace

CudaClock::CudaClock() {
  check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
  check(
      cudaHostAlloc(reinterpret_cast<void**>(&words_), sizeof(ClockWords), cudaHostAllocPortable | cudaHostAllocMapped),
      "cudaHostAlloc");
  anchor_ = timing_event(), next_ = timing_event(), after_ = timing_event();
}

CudaClock::~CudaClock() {
  cudaStreamSynchronize(stream_);
  for (cudaEvent_t event : {anchor_, next_, after_}) cudaEventDestroy(event);
  cudaFreeHost(words_);
  cudaStreamDestroy(stream_);
}

ClockReading CudaClock::read() {
  for (unsigned tries = 0; tries < kTries; ++tries) {
    if (const auto reading = exchange_clocks()) return *reading;
  }
  throw Failure("could not compare the host's and the GPU's clocks");
}

std::optional<ClockReading> CudaClock::exchange_clocks() {
  *words_ = {};
  exchange<<<1, 1, 0, stream_>>>(words_);
  check(cudaGetLastError(), "launching the clock exchange");
  // The minimum lead of the host's clock that the host saw.
  std::int64_t least_ahead = std::numeric_limits<std::int64_t>::max();
  std::uint64_t shown = 0;
  const std::uint64_t begin = now_ns();
  while (SystemMemory::load_acquire(words_->ended) == 0) {
    const std::uint64_t before = now_ns();
    if (before - begin > kTooLongNs) break;  // synchronizing the stream reports the cause
    SystemMemory::store_release(words_->host, before);
    const std::uint64_t device = SystemMemory::load_relaxed(words_->device);
    if (device == shown) continue;
    shown = device;
    least_ahead = std::min(least_ahead, static_cast<std::int64_t>(now_ns() - device));
  }
  check(cudaStreamSynchronize(stream_), "exchanging clocks");
  const std::int64_t max_ahead = words_->max_ahead;
  // Nothing was exchanged (for example because launches are serialized), or the GPU's clock is too coarse.
  if (shown == 0 || least_ahead < max_ahead) return std::nullopt;
  ClockReading reading;
  reading.events_within_ns = anchor();
  reading.device_ns = shown;
  reading.host_ns = shown + static_cast<std::uint64_t>(max_ahead + (least_ahead - max_ahead) / 2);
  reading.within_ns = static_cast<double>(least_ahead - max_ahead) / 2;
  return reading;
}

/// Takes the time of an event from a kernel that runs between that event and a second one, and keeps the closest pair
/// of several tries.
double CudaClock::anchor() {
  float closest = std::numeric_limits<float>::max();
  for (unsigned i = 0; i < kAnchors; ++i) {
    check(cudaEventRecord(next_, stream_), "cudaEventRecord");
    show<<<1, 1, 0, stream_>>>(words_);
    check(cudaGetLastError(), "launching the kernel that publishes the GPU clock");
    check(cudaEventRecord(after_, stream_), "cudaEventRecord");
    check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
    float apart = 0;
    check(cudaEventElapsedTime(&apart, next_, after_), "cudaEventElapsedTime");
    if (apart >= closest) continue;
    closest = apart;
    std::swap(anchor_, next_);
    anchor_ns_ = words_->device - static_cast<std::uint64_t>(std::lround(apart / 2 * 1e6));
  }
  return closest / 2 * 1e6;
}

std::uint64_t CudaClock::ready_ns(cudaEvent_t event) const {
  if (anchor_ns_ == 0) return 0;
  float since = 0;
  check(cudaEventElapsedTime(&since, anchor_, event), "cudaEventElapsedTime");
  return anchor_ns_ + static_cast<std::uint64_t>(std::llround(static_cast<double>(since) * 1e6));
}

}  // namespace feedrate
