#pragma once
#include <algorithm>
#include <cstring>
#include <vector>

#include "common/payload/payload.hpp"
#include "common/payload/pool.hpp"
#include "common/payload/runs.hpp"
#include "common/payload/tolerance.hpp"
#include "kernels/serving/kernel_of.hpp"
#include "kernels/workload.hpp"

/// Makes a Workload from one functor struct F. F has the parts that KernelOf needs (kernels/serving/kernel_of.hpp) and
///
///     static constexpr kName, kDescription
///     static string why_unsupported(payload)      host: the required sizes, or "" if `payload` is allowed
///     reference(payload, bytes, result)           host: computes the result with independent, plain code
///   and, optionally,
///     struct Options; static const Axes<Options>& axes(); explicit F(const Options&)    its own axes
///     check(seed, payload, results, ids)          host: Workload::check, faster than by memcmp with a pool of results
///     static constexpr Tolerance kTolerance       allowed deviation from the reference (payload/tolerance.hpp)
///     shape(payload, bytes)                       host: turns random words into valid input (finite floats, …)
namespace feedrate {

FEEDRATE_HD inline float to_float(std::uint32_t bits) {
#ifdef __CUDA_ARCH__
  return __uint_as_float(bits);
#else
  float value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
#endif
}
FEEDRATE_HD inline std::uint32_t to_bits(float value) {
#ifdef __CUDA_ARCH__
  return __float_as_uint(value);
#else
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
#endif
}

/// Keeps each word's mantissa and sets sign and exponent: floats in [1, 2).
inline void make_unit_floats(std::byte* payload, std::size_t bytes) {
  for (std::size_t at = 0; at + 4 <= bytes; at += 4) {
    std::uint32_t word = 0;
    std::memcpy(&word, payload + at, 4);
    word = (word & 0x007F'FFFFu) | 0x3F80'0000u;
    std::memcpy(payload + at, &word, 4);
  }
}

template <class F>
class WorkloadOf final : public KernelOf<F, Workload> {
 public:
  explicit WorkloadOf(F functor = F()) : KernelOf<F, Workload>(std::move(functor)) {}

  std::size_t result_bytes(std::size_t payload) const override { return F::result_bytes(payload); }
  std::string why_unsupported(std::size_t payload) const override { return F::why_unsupported(payload); }

  void prepare(std::size_t payload) override {
    if constexpr (kPooled) {
      if (pool_.holds(payload) || !PayloadPool::fits(payload, F::result_bytes(payload))) return;
      pool_ = PayloadPool(
          payload, F::result_bytes(payload),
          [&](std::uint64_t entry, std::byte* to) {
            std::vector<std::byte> message(stride_of(payload));
            const Messages slot{message.data(), message.size(), 1};
            make(kPoolSeed, entry, payload, slot);
            std::memcpy(to, slot.payload(0), payload);
          },
          [&](const std::byte* from, std::byte* to) { this->functor_.reference(from, payload, to); });
    }
  }
  std::string how_checked(std::size_t payload) const override {
    if (!kPooled) return "each against its own expected bytes";
    return pool_.holds(payload) ? "against one of " + std::to_string(PayloadPool::kEntries) + " expected results"
                                : "each by the reference";
  }

  void fill(std::uint64_t seed, std::uint64_t first_id, std::size_t payload, Messages messages) const override {
    if constexpr (!kPooled) {
      make(seed, first_id, payload, messages);
    } else {
      for (std::size_t i = 0; i < messages.count; ++i) {
        const std::uint64_t id = first_id + i, entry = PayloadPool::entry_of(seed, id);
        if (pool_.holds(payload)) {
          std::memcpy(messages.payload(i), pool_.payload(entry), payload);
        } else {
          make(kPoolSeed, entry, payload, messages.from(i).first(1));
        }
        messages.header(i) = {id, static_cast<std::uint32_t>(payload), 0};
      }
    }
  }
  Checked check(std::uint64_t seed, std::size_t payload, ConstMessages results, std::uint64_t* ids) const override {
    if constexpr (!kPooled) {
      return F::check(seed, payload, results, ids);
    } else {
      return check_each(results, ids, [&](std::size_t i, std::uint64_t id) {
        return is_result_of(seed, id, payload, results.header(i), results.payload(i));
      });
    }
  }
  void answer(std::uint64_t seed, std::uint64_t first_id, std::size_t payload, Messages results) const override {
    const std::size_t bytes = F::result_bytes(payload);
    for (std::size_t i = 0; i < results.count; ++i) {
      const std::uint64_t id = first_id + i;
      const std::byte* const expected = kPooled && pool_.holds(payload) ? pool_.result(PayloadPool::entry_of(seed, id))
                                                                        : expected_of(seed, id, payload).data();
      std::memcpy(results.payload(i), expected, bytes);
      results.header(i) = {id, static_cast<std::uint32_t>(bytes), checksum_of(expected, bytes)};
    }
  }
  std::string difference(std::uint64_t seed, std::uint64_t id, std::size_t payload,
                         const ConstMessages& result) const override {
    return difference_from(expected_of(seed, id, payload), result);
  }
  void reference(const std::byte* payload, std::size_t bytes, std::byte* result) const override {
    this->functor_.reference(payload, bytes, result);
  }
  bool exact() const override { return kExact; }
  bool same(const std::byte* expected, const std::byte* found, std::size_t bytes) const override {
    if constexpr (kExact) {
      return std::memcmp(expected, found, bytes) == 0;
    } else {
      const Tolerance tolerance = F::kTolerance;
      return tolerance.allows(expected, found, bytes);
    }
  }

 private:
  static constexpr bool kExact = !requires { F::kTolerance; };
  /// Whether to use a pool. A workload with its own check needs none, because that check is faster than any table of
  /// results.
  static constexpr bool kPooled =
      !requires(std::uint64_t seed, std::size_t payload, ConstMessages results, std::uint64_t* ids) {
    F::check(seed, payload, results, ids);
  };
  static constexpr std::uint64_t kPoolSeed = 1;

  /// Generates a unique message for each id, in the workload's format.
  static void make(std::uint64_t seed, std::uint64_t first_id, std::size_t payload, Messages messages) {
    if constexpr (requires { F::shape(messages.base, payload); }) {
      for (std::size_t i = 0; i < messages.count;
           ++i) {  // one at a time, so that each is shaped while it is in the cache
        fastest_passes().fill(seed, first_id + i, payload, messages.from(i).first(1));
        F::shape(messages.payload(i), payload);
      }
    } else {
      fastest_passes().fill(seed, first_id, payload, messages);
    }
  }
  /// The reference's result; valid until this thread's next call.
  const std::vector<std::byte>& expected_of(std::uint64_t seed, std::uint64_t id, std::size_t payload) const {
    thread_local std::vector<std::byte> message, expected;
    message.resize(stride_of(payload));
    expected.resize(F::result_bytes(payload));
    const Messages slot{message.data(), message.size(), 1};
    fill(seed, id, payload, slot);
    this->functor_.reference(slot.payload(0), payload, expected.data());
    return expected;
  }
  bool is_result_of(std::uint64_t seed, std::uint64_t id, std::size_t payload, const Header& header,
                    const std::byte* result) const {
    const std::size_t bytes = F::result_bytes(payload), entry = PayloadPool::entry_of(seed, id);
    const bool pooled = kPooled && pool_.holds(payload);
    const std::byte* const expected = pooled ? pool_.result(entry) : expected_of(seed, id, payload).data();
    if constexpr (!kExact) {
      return header.length == bytes && same(expected, result, bytes) && checksum_of(result, bytes) == header.checksum;
    } else {
      const bool right = same(expected, result, bytes);
      const std::uint32_t sum = pooled ? pool_.checksum(entry) : checksum_of(expected, bytes);
      return header.length == bytes && right && sum == header.checksum;
    }
  }

  PayloadPool pool_;
};

/// Registers F as a workload; declare a `const WorkloadRegistration<F>` at namespace scope.
template <class F>
struct WorkloadRegistration : Registration<WorkloadEntry> {
  explicit WorkloadRegistration(const char* file = __builtin_FILE()) : Registration(F::kName, entry(), file) {}

 private:
  static WorkloadEntry entry() {
    if constexpr (requires { F::axes(); }) {
      const auto make = [](const Values& values) { return std::make_unique<WorkloadOf<F>>(F(F::axes().of(values))); };
      return {F::kDescription, make, F::axes().list()};
    } else {
      return {F::kDescription, [](const Values&) { return std::make_unique<WorkloadOf<F>>(); }};
    }
  }
};

}  // namespace feedrate
