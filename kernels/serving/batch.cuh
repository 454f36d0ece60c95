#pragma once
#include "common/device/work.hpp"
#include "kernels/serving/resident_limits.hpp"
#include "kernels/serving/serve.hpp"

/// Serves a sequence of messages with a team of GPU threads; contains the kernel that is launched for each batch.
///
/// Small messages are staged: the team copies a sequence of them into shared memory with coalesced 16-byte loads,
/// serves them there (one thread or one warp per message), and writes complete coalesced lines back. Over the bus this
/// turns many small strided requests into a few large ones. Larger messages are served in place, each by a warp or by
/// the entire team.
namespace feedrate {

// Maximum strides for staging (too few larger messages would fit to keep a block busy) and for serving with one thread
// per message (larger messages are served by a warp each).
inline constexpr unsigned kLargestStaged = 2048;
inline constexpr unsigned kLargestPerThread = 144;

/// Number of messages that fit into `staging` bytes together with their results; 0: messages are served in place.
inline __host__ __device__ unsigned staged_at_once(unsigned staging, unsigned in_stride, unsigned out_stride) {
  const bool small = in_stride <= kLargestStaged && out_stride <= kLargestStaged;
  return small ? staging / (in_stride + out_stride) : 0;
}

/// Copies with all threads of the team; both sides must be 16-byte aligned. Each warp starts at a line boundary of
/// `far`, the side across the bus, because a line shared by two warps would be requested twice.
template <class Group>
__device__ void copy_by(const Group& team, std::byte* to, const std::byte* from, std::size_t bytes,
                        const std::byte* far) {
  constexpr unsigned kPiecesALine = 8;
  const unsigned before = reinterpret_cast<std::uintptr_t>(far) / sizeof(uint4) % kPiecesALine;
  auto* const destination = reinterpret_cast<uint4*>(to) - before;
  const auto* const source = reinterpret_cast<const uint4*>(from) - before;
  // Loads in flight per thread, also in the last round; otherwise each load would take a separate round trip.
  constexpr unsigned kAtOnce = 6;
  const auto end = static_cast<unsigned>(bytes / sizeof(uint4)) + before, size = team.size();
  for (unsigned first = team.rank(); first < end; first += kAtOnce * size) {
    uint4 pieces[kAtOnce];
#pragma unroll
    for (unsigned k = 0; k < kAtOnce; ++k) {
      const unsigned i = first + k * size;
      if (i >= before && i < end) pieces[k] = source[i];
    }
#pragma unroll
    for (unsigned k = 0; k < kAtOnce; ++k) {
      const unsigned i = first + k * size;
      if (i >= before && i < end) destination[i] = pieces[k];
    }
  }
}

/// Serves all messages of a batch with this team; each message is served by a thread, a warp or the team (`block`).
template <class F, class Group, class Recorder>
__device__ void serve_each(const F& functor, const Group& team, const BatchView& batch, Granularity granularity,
                           const Recorder& recorder) {
  const auto in = [&](unsigned i) { return batch.in_at(i); };
  const auto out = [&](unsigned i) { return batch.out_at(i); };
  if (granularity == Granularity::thread) {
    for (unsigned i = team.rank(); i < batch.count; i += team.size()) {
      serve_message(functor, OneThread{}, in(i), batch.in_stride, out(i), batch.out_stride, recorder);
    }
  } else if (granularity == Granularity::warp) {
    for (unsigned i = team.rank() / 32; i < batch.count; i += team.size() / 32) {
      serve_message(functor, OneWarp{}, in(i), batch.in_stride, out(i), batch.out_stride, recorder);
    }
  } else {
    for (unsigned i = 0; i < batch.count; ++i)
      serve_message(functor, team, in(i), batch.in_stride, out(i), batch.out_stride, recorder);
  }
}

/// Serves all messages of `batch` with this team, which has `staging` bytes of shared memory at `stage`.
template <class F, class Group, class Recorder>
__device__ void serve_by(const F& functor, const Group& team, const BatchView& batch, Granularity granularity,
                         const Recorder& recorder, std::byte* stage, unsigned staging) {
  const unsigned at_once = staged_at_once(staging, batch.in_stride, batch.out_stride);
  if (granularity == Granularity::automatic) {
    if (at_once != 0) {
      granularity = batch.in_stride <= kLargestPerThread ? Granularity::thread : Granularity::warp;
    } else {
      granularity = batch.count >= team.size() / 32 ? Granularity::warp : Granularity::block;
    }
  }
  if (at_once == 0) return serve_each(functor, team, batch, granularity, recorder);
  for (unsigned first = 0; first < batch.count; first += at_once) {
    const unsigned n = min(at_once, batch.count - first);
    const BatchView far = batch.part(first, n);
    BatchView near = far;
    near.in = stage;
    near.out = stage + std::size_t{n} * batch.in_stride;
    copy_by(team, stage, far.in, far.in_begin(n), far.in);
    team.sync();
    serve_each(functor, team, near, granularity, recorder);
    team.sync();
    copy_by(team, far.out, near.out, far.out_begin(n), far.out);
    team.sync();  // the staging memory may be overwritten
  }
}

template <class F, class Recorder>
__global__ void __launch_bounds__(1024)
    batch_kernel(F functor, BatchView batch, Recorder recorder, unsigned per_block, unsigned staging) {
  extern __shared__ uint4 stage[];
  __shared__ TeamScratch scratch;
  const unsigned first = blockIdx.x * per_block;
  serve_by(functor, Team(0, blockDim.x, &scratch), batch.part(first, min(per_block, batch.count - first)),
           Granularity::automatic, recorder, reinterpret_cast<std::byte*>(stage), staging);
}

}  // namespace feedrate
