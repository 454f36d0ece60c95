#pragma once
#include <cstdint>
#include <cstring>

#include "common/message/message.hpp"
#ifdef __CUDACC__
#include <cuda/atomic>
#else
#include <atomic>
#endif
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
#include <emmintrin.h>
#endif

/// The ring protocol's accesses to memory that host and GPU share, for host and GPU code. The protocol is a
/// template over the class SystemMemory, so that a test can replace it with a model of memory
/// (tests/common/ring_model_test.cpp).
///
/// SystemMemory uses `cuda::atomic_ref` when compiled by nvcc, and `std::atomic_ref` otherwise (builds without CUDA,
/// ThreadSanitizer). Both act on the plain word with the same memory orders, so code compiled by either may share
/// memory.
namespace feedrate {

/// The unit of flagged slots: twelve bytes of a message, and a flag made from that message's number. Units are read and
/// written atomically, so a reader that sees the flag also has the data.
struct alignas(16) Unit {
  std::uint32_t data[3];
  std::uint32_t flag;
};

struct SystemMemory {
#ifdef __CUDACC__
  using Word = cuda::atomic_ref<std::uint64_t, cuda::thread_scope_system>;
  using Half = cuda::atomic_ref<std::uint32_t, cuda::thread_scope_system>;
  /// A word shared only by the pollers of one lane: threads of one block, or host threads.
  using LaneWord = cuda::atomic_ref<std::uint64_t, cuda::thread_scope_block>;
  static constexpr auto kRelaxed = cuda::memory_order_relaxed;
  static constexpr auto kAcquire = cuda::memory_order_acquire;
  static constexpr auto kRelease = cuda::memory_order_release;
  static constexpr auto kAcquireRelease = cuda::memory_order_acq_rel;
#else
  using Word = std::atomic_ref<std::uint64_t>;
  using Half = std::atomic_ref<std::uint32_t>;
  using LaneWord = std::atomic_ref<std::uint64_t>;
  static constexpr auto kRelaxed = std::memory_order_relaxed;
  static constexpr auto kAcquire = std::memory_order_acquire;
  static constexpr auto kRelease = std::memory_order_release;
  static constexpr auto kAcquireRelease = std::memory_order_acq_rel;
#endif

  static FEEDRATE_HD std::uint64_t load_relaxed(std::uint64_t& word) { return Word(word).load(kRelaxed); }
  static FEEDRATE_HD std::uint64_t load_acquire(std::uint64_t& word) { return Word(word).load(kAcquire); }
  static FEEDRATE_HD void store_relaxed(std::uint64_t& word, std::uint64_t value) { Word(word).store(value, kRelaxed); }
  static FEEDRATE_HD void store_release(std::uint64_t& word, std::uint64_t value) { Word(word).store(value, kRelease); }
  static FEEDRATE_HD void or_release(std::uint64_t& word, std::uint64_t bits) { Word(word).fetch_or(bits, kRelease); }
  /// Sequentially consistent: on the host, all earlier stores are visible before any later access.
  static FEEDRATE_HD std::uint64_t exchange(std::uint64_t& word, std::uint64_t value) {
    return Word(word).exchange(value);
  }
  static FEEDRATE_HD std::uint32_t load_acquire(std::uint32_t& half) { return Half(half).load(kAcquire); }
  static FEEDRATE_HD void store_release(std::uint32_t& half, std::uint32_t value) { Half(half).store(value, kRelease); }

  static FEEDRATE_HD std::uint64_t lane_peek(std::uint64_t& word) { return LaneWord(word).load(kRelaxed); }
  /// Relaxed, because a claim passes no data from one poller to another.
  static FEEDRATE_HD bool lane_exchange(std::uint64_t& word, std::uint64_t expected, std::uint64_t value) {
    return LaneWord(word).compare_exchange_strong(expected, value, kRelaxed, kRelaxed);
  }
  static FEEDRATE_HD std::uint64_t lane_decrement(std::uint64_t& word) {
    return LaneWord(word).fetch_sub(1, kAcquireRelease) - 1;
  }

  /// Relaxed and atomic. x86 processors with AVX guarantee this for aligned 16-byte accesses (Intel SDM vol. 3, 9.1.1;
  /// AMD APM vol. 2, 7.3.2), and PTX guarantees it for scalar .b128 accesses (ISA 8.3, sm_70 and later).
  static FEEDRATE_HD Unit load_unit(const Unit& at) {
#ifdef __CUDA_ARCH__
    std::uint64_t low, high;
    asm volatile("{ .reg .b128 unit; ld.relaxed.sys.global.b128 unit, [%2]; mov.b128 {%0, %1}, unit; }"
                 : "=l"(low), "=l"(high)
                 : "l"(&at)
                 : "memory");
    return {{static_cast<std::uint32_t>(low), static_cast<std::uint32_t>(low >> 32), static_cast<std::uint32_t>(high)},
            static_cast<std::uint32_t>(high >> 32)};
#else
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
    // In assembly, because a compiler may split a plain vector load if only parts of the vector are used.
    __m128i whole;
    asm volatile("movdqa %1, %0" : "=x"(whole) : "m"(at));
    const auto low = static_cast<std::uint64_t>(_mm_cvtsi128_si64(whole));
    const auto high = static_cast<std::uint64_t>(_mm_cvtsi128_si64(_mm_unpackhi_epi64(whole, whole)));
    return {{static_cast<std::uint32_t>(low), static_cast<std::uint32_t>(low >> 32), static_cast<std::uint32_t>(high)},
            static_cast<std::uint32_t>(high >> 32)};
#else
    Unit unit;
    const auto whole = __atomic_load_n(reinterpret_cast<const unsigned __int128*>(&at), __ATOMIC_RELAXED);
    std::memcpy(&unit, &whole, sizeof unit);
    return unit;
#endif
#endif
  }
  static FEEDRATE_HD void store_unit(Unit& at, const Unit& unit) {
#ifdef __CUDA_ARCH__
    asm volatile("{ .reg .b128 unit; mov.b128 unit, {%1, %2}; st.relaxed.sys.global.b128 [%0], unit; }" ::"l"(&at),
                 "l"(unit.data[0] | std::uint64_t{unit.data[1]} << 32),
                 "l"(unit.data[2] | std::uint64_t{unit.flag} << 32)
                 : "memory");
#elif defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
    const __m128i whole = _mm_set_epi64x(static_cast<std::int64_t>(unit.data[2] | std::uint64_t{unit.flag} << 32),
                                         static_cast<std::int64_t>(unit.data[0] | std::uint64_t{unit.data[1]} << 32));
    asm volatile("movdqa %1, %0" : "=m"(at) : "x"(whole));
#else
    unsigned __int128 whole;
    std::memcpy(&whole, &unit, sizeof whole);
    __atomic_store_n(reinterpret_cast<unsigned __int128*>(&at), whole, __ATOMIC_RELAXED);
#endif
  }

  /// Writes a unit on the host without passing through registers narrower than a unit, because unit accesses are most
  /// of the host's cost per flagged message. `data`: the unit's twelve bytes; sixteen bytes must be readable.
  static void store_unit(Unit& at, const std::byte* data, std::uint32_t flag) {
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
    const __m128i kept =
        _mm_and_si128(_mm_loadu_si128(reinterpret_cast<const __m128i*>(data)), _mm_set_epi32(0, -1, -1, -1));
    const __m128i whole = _mm_or_si128(kept, _mm_set_epi32(static_cast<int>(flag), 0, 0, 0));
    asm volatile("movdqa %1, %0" : "=m"(at) : "x"(whole));
#else
    Unit unit{{}, flag};
    std::memcpy(unit.data, data, sizeof unit.data);
    store_unit(at, unit);
#endif
  }
  /// Reads a unit on the host in the same way. Returns the flag and writes sixteen bytes to `to`: the data, then the
  /// flag.
  static std::uint32_t load_unit(const Unit& at, std::byte* to) {
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
    __m128i whole;
    asm volatile("movdqa %1, %0" : "=x"(whole) : "m"(at));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), whole);
    return static_cast<std::uint32_t>(_mm_cvtsi128_si32(_mm_shuffle_epi32(whole, 0xFF)));
#else
    const Unit unit = load_unit(at);
    std::memcpy(to, &unit, sizeof unit);
    return unit.flag;
#endif
  }
};

}  // namespace feedrate
