#pragma once
#include <cstdint>

/// Vector instructions of x86-64, chosen at run time. Functions that use them are compiled once per set.
namespace feedrate::tile {

enum class Simd : std::uint8_t { plain, avx2, avx512 };

/// The largest set of this CPU.
inline Simd simd_here() {
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx512f")) return Simd::avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return Simd::avx2;
#endif
  return Simd::plain;
}

/// `lanes` floats in one register. Loads and stores through this type need no alignment.
template <unsigned lanes>
struct Floats {
  using Type __attribute__((vector_size(4 * lanes), aligned(4), may_alias)) = float;
};

#ifdef __x86_64__
#define FEEDRATE_AVX2 __attribute__((target("avx2,fma")))
#define FEEDRATE_AVX512 __attribute__((target("avx512f,avx512vl,avx512dq,avx512bw,fma")))
#else
#define FEEDRATE_AVX2
#define FEEDRATE_AVX512
#endif

}  // namespace feedrate::tile
