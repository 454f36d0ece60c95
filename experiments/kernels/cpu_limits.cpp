#include "experiments/kernels/cpu_limits.hpp"

#include <atomic>
#include <thread>
#include <vector>

#include "common/clock.hpp"
#include "common/threads/threads.hpp"
#include "kernels/tile/cpu/simd.hpp"

namespace feedrate::kernels {
namespace {

constexpr unsigned kChains = 12, kSteps = 4096;  // independent sums, so that no multiply-add waits for another one

/// Runs kSteps multiply-adds in each of kChains vectors of `lanes` floats.
template <unsigned lanes>
[[gnu::always_inline]] inline float multiply_adds(float factor) {
  using Vector = typename tile::Floats<lanes>::Type;
  Vector chains[kChains];
#pragma GCC unroll 12
  for (unsigned i = 0; i < kChains; ++i) chains[i] = Vector{} + static_cast<float>(i);
  const Vector by = Vector{} + factor, more = Vector{} + 0.5f;
  for (unsigned step = 0; step < kSteps; ++step) {
#pragma GCC unroll 12
    for (unsigned i = 0; i < kChains; ++i) chains[i] = chains[i] * by + more;
  }
  float sum = 0;
  for (const Vector& chain : chains) sum += chain[0];
  return sum;
}
FEEDRATE_AVX512 float multiply_adds_avx512(float factor) { return multiply_adds<16>(factor); }
FEEDRATE_AVX2 float multiply_adds_avx2(float factor) { return multiply_adds<8>(factor); }
float multiply_adds_plain(float factor) { return multiply_adds<4>(factor); }

double rate_of_threads(unsigned threads) {
  const tile::Simd simd = tile::simd_here();
  const auto run = simd == tile::Simd::avx512 ? multiply_adds_avx512
                   : simd == tile::Simd::avx2 ? multiply_adds_avx2
                                              : multiply_adds_plain;
  const unsigned lanes = simd == tile::Simd::avx512 ? 16 : simd == tile::Simd::avx2 ? 8 : 4;
  std::atomic<std::uint64_t> rounds{0};
  std::atomic<bool> over{false};
  std::vector<std::jthread> others;
  const auto work = [&] {
    volatile float sink = 0;
    std::uint64_t mine = 0;
    for (; !over.load(std::memory_order_relaxed); ++mine) sink = sink + run(0.999f);
    rounds.fetch_add(mine);
  };
  const std::uint64_t begin = now_ns();
  for (unsigned i = 0; i < threads; ++i) others.emplace_back(work);
  std::this_thread::sleep_for(std::chrono::duration<double>(kReadingSeconds));
  over = true;
  others.clear();
  const double seconds = static_cast<double>(now_ns() - begin) / 1e9;
  return 2.0 * lanes * kChains * kSteps * static_cast<double>(rounds.load()) / seconds;
}

}  // namespace

void add_cpu_limits(LimitList& limits) {
  limits.add({kCpuFma, Quantity::operations_per_second, Scope{},
              "fused multiply-adds of fp32 on all cores, two operations each"},
             [] { return rate_of_threads(available_cores()); });
  limits.add({kCpuCoreFma, Quantity::operations_per_second, Scope{},
              "fused multiply-adds of fp32 on one core, two operations each"},
             [] { return rate_of_threads(1); });
}

}  // namespace feedrate::kernels
