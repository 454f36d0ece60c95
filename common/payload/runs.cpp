#include "common/payload/runs.hpp"

#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

#include "common/payload/payload.hpp"

namespace feedrate {
namespace {

constexpr std::size_t kLong = 1024;  // bytes; writes of at least this size are aligned to vectors

namespace any {
constexpr std::size_t kWidth = 16;
#include "common/payload/runs.inc"
}  // namespace any

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define FEEDRATE_X86_VERSIONS
#pragma GCC push_options
#pragma GCC target("avx2,bmi,bmi2,fma,lzcnt,movbe,f16c,popcnt")
namespace v3 {
constexpr std::size_t kWidth = 32;
#include "common/payload/runs.inc"
}  // namespace v3
#pragma GCC target("avx512f,avx512bw,avx512cd,avx512dq,avx512vl")
namespace v4 {
constexpr std::size_t kWidth = 64;
#include "common/payload/runs.inc"
}  // namespace v4
#pragma GCC pop_options
#endif

std::vector<RunPasses> passes_of_this_cpu() {
  std::vector<RunPasses> passes;
#ifdef FEEDRATE_X86_VERSIONS
  if (__builtin_cpu_supports("x86-64-v4")) passes.push_back({"x86-64-v4", v4::fill, v4::check_echoes});
  if (__builtin_cpu_supports("x86-64-v3")) passes.push_back({"x86-64-v3", v3::fill, v3::check_echoes});
#endif
  passes.push_back({"any", any::fill, any::check_echoes});
  return passes;
}

}  // namespace

std::span<const RunPasses> run_passes() {
  static const std::vector<RunPasses> passes = passes_of_this_cpu();
  return passes;
}

}  // namespace feedrate
