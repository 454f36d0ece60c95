#pragma once
#include <cmath>
#include <cstring>
#include <type_traits>
#include <vector>

#include "common/error.hpp"
#include "kernels/group.hpp"
#include "kernels/payload.hpp"
#include "kernels/runs.hpp"
#include "kernels/workload.hpp"
#ifdef __CUDACC__
#include "kernels/batch.cuh"
#include "kernels/resident.cuh"
#endif

/// Makes a Workload in all its forms (CPU, launched kernel, resident kernel) from one functor struct F:
///
///     static constexpr kName, kDescription;       explicit F(const WorkloadOptions&);
///     static bool accepts(bytes);                 HD: whether a message of this length can be worked on
///     static size_t result_bytes(payload);        HD
///     static string refuse(payload);              host: why this payload can't be swept, or ""
///     uint32_t operator()(group, in, bytes, out)  HD: writes the result, returns this thread's share of its checksum
///     reference(payload, bytes, result)           host: the same by independent, plain code
///   or instead of the reference
///     all_match(seed, first_id, payload, results) host: Workload::all_match, faster than by reference and memcmp
///   and, if wanted,
///     shape(payload, bytes)                       host: turns random words into valid input (finite floats, …)
///
/// Pieces are 16 bytes; reading and writing up to the next multiple of 16 behind `bytes` is allowed.
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

/// One message by one group: the functor, and the header that every result carries.
template <class F, class Group>
FEEDRATE_HD void serve_message(const F& functor, const Group& group, const std::byte* in, std::size_t in_stride,
                               std::byte* out) {
  Header header = *reinterpret_cast<const Header*>(in);
  const std::size_t length = header.length;
  Fault fault = Fault::none;
  if (length > in_stride - sizeof(Header)) {
    fault = Fault::too_long;
  } else if (!F::accepts(length)) {
    fault = Fault::bad_length;
  }
  if (fault == Fault::none) {
    const auto* payload = reinterpret_cast<const Vec16*>(in + sizeof(Header));
    header.checksum = group.sum(functor(group, payload, length, reinterpret_cast<Vec16*>(out + sizeof(Header))));
    header.length = static_cast<std::uint32_t>(F::result_bytes(length));
  } else {
    header.checksum = 0;
    header.length = kFailed | static_cast<std::uint32_t>(fault);
  }
  if (group.rank() == 0) *reinterpret_cast<Header*>(out) = header;
}

template <class F>
class WorkloadOf final : public Workload {
 public:
  explicit WorkloadOf(const WorkloadOptions& options) : functor_(options) {}

  std::size_t result_bytes(std::size_t payload) const override { return F::result_bytes(payload); }
  std::string refuse(std::size_t payload) const override { return F::refuse(payload); }

  void fill(std::uint64_t seed, std::uint64_t first_id, std::size_t payload, Messages messages) const override {
    if constexpr (requires { F::shape(messages.base, payload); }) {
      for (std::size_t i = 0; i < messages.count; ++i) {  // one at a time, so that it is shaped while in the cache
        fastest_passes().fill(seed, first_id + i, payload, messages.from(i).first(1));
        F::shape(messages.payload(i), payload);
      }
    } else {
      fastest_passes().fill(seed, first_id, payload, messages);
    }
  }
  bool all_match(std::uint64_t seed, std::uint64_t first_id, std::size_t payload,
                 ConstMessages results) const override {
    if constexpr (requires { F::all_match(seed, first_id, payload, results); }) {
      return F::all_match(seed, first_id, payload, results);
    } else {
      bool right = true;
      for (std::size_t i = 0; i < results.count; ++i) {
        right &= matches(seed, first_id + i, payload, results.header(i), results.payload(i));
      }
      return right;
    }
  }
  void run_on_cpu(const BatchView& batch) const override {
    for (std::uint32_t i = 0; i < batch.count; ++i) {
      serve_message(functor_, OneThread{}, batch.in + std::size_t{i} * batch.in_stride, batch.in_stride,
                    batch.out + std::size_t{i} * batch.out_stride);
    }
  }
#ifdef __CUDACC__
  void launch_on_cuda(const BatchView& batch, unsigned block, void* stream) const override {
    launch_batch(functor_, batch, block, static_cast<cudaStream_t>(stream));
  }
  void launch_resident_on_cuda(std::span<const LaneView> lanes, const ResidentShape& shape,
                               void* stream) const override {
    launch_resident(functor_, lanes, shape, static_cast<cudaStream_t>(stream));
  }
  unsigned resident_blocks_that_fit(const ResidentShape& shape) const override { return resident_blocks<F>(shape); }
#else
  void launch_on_cuda(const BatchView&, unsigned, void*) const override { throw Failure("built without CUDA"); }
  void launch_resident_on_cuda(std::span<const LaneView>, const ResidentShape&, void*) const override {
    throw Failure("built without CUDA");
  }
  unsigned resident_blocks_that_fit(const ResidentShape&) const override { return 0; }
#endif

 private:
  bool matches(std::uint64_t seed, std::uint64_t id, std::size_t payload, const Header& header,
               const std::byte* result) const {
    const std::size_t bytes = F::result_bytes(payload);
    thread_local std::vector<std::byte> message, expected;
    message.resize(stride_of(payload));
    expected.resize(bytes);
    const Messages slot{message.data(), message.size(), 1};
    fill(seed, id, payload, slot);
    functor_.reference(slot.payload(0), payload, expected.data());
    const bool same = std::memcmp(expected.data(), result, bytes) == 0;
    const bool right_sum = checksum_of(expected.data(), bytes) == header.checksum;  // worked out for wrong results too
    return header.id == id && header.length == bytes && same && right_sum;
  }

  F functor_;
};

/// A namespace-scope `const WorkloadRegistration<F>` adds F to the workloads.
template <class F>
struct WorkloadRegistration : Registration<WorkloadEntry> {
  WorkloadRegistration()
      : Registration(F::kName, {F::kDescription, [](const WorkloadOptions& options) {
                                  return std::make_unique<WorkloadOf<F>>(options);
                                }}) {}
};

}  // namespace feedrate
