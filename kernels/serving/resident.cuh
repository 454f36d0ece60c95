#pragma once
#include "common/device/device_clock.hpp"
#include "common/ring/lane.hpp"
#include "kernels/serving/batch.cuh"

/// The resident form of a workload: one block per lane, split into teams. Each team polls the lane and serves the
/// messages that it claims, until the lane is stopped or has been idle for too long.
namespace feedrate {

/// Waits between unsuccessful polls and decides when to give up. Reads the clock only at every kPollsPerClockRead-th
/// poll.
class Idle {
 public:
  explicit __device__ Idle(const IdlePolicy& policy) : policy_(policy) {}
  /// Returns true if the lane has been idle for long enough. `next` is the next number to claim; while it changes, the
  /// lane is not idle: other pollers are merely faster than this one.
  __device__ bool wait(std::uint64_t next) {
    if (next != next_) {
      next_ = next;
      reset();
    }
    if (policy_.backs_off && polls_ >= kPatience) {
      __nanosleep(pause_ns_);
      pause_ns_ = min(2 * pause_ns_, kLongestPauseNs);
    }
    if (++polls_ % kPollsPerClockRead != 0) return false;
    const std::uint64_t now = device_clock_ns();
    if (polls_ == kPollsPerClockRead) since_ = now;
    return now - since_ > policy_.leave_after_ns;
  }
  __device__ void reset() {
    polls_ = 0;
    pause_ns_ = kShortestPauseNs;
  }

 private:
  static constexpr unsigned kPollsPerClockRead = 64, kPatience = 32, kShortestPauseNs = 64, kLongestPauseNs = 4096;
  IdlePolicy policy_;
  std::uint64_t since_ = 0, next_ = 0;
  unsigned polls_ = 0, pause_ns_ = kShortestPauseNs;
};

/// Serves by counter: the team's first thread polls and claims, all threads serve the messages, and the first thread
/// announces the results; with ResultOrder::as_finished, all threads announce them. `claimed_ns`: a shared word for the
/// team.
template <class F, class Group, class Recorder>
__device__ void serve_counted(const F& functor, const Group& team, const LaneView& lane, LaneState* state,
                              const ResidentShape& shape, Recorder recorder, std::uint64_t* claimed_ns,
                              std::byte* stage, unsigned staging) {
  const RingView& ring = lane.ring;
  // Messages that are not staged are claimed in groups that are large enough to keep the bus busy, but small enough for
  // results to return before the rest is read.
  constexpr unsigned kUnstagedBytes = 256 << 10;
  const unsigned at_once = staged_at_once(staging, ring.in_stride, ring.out_stride);
  const std::uint64_t most = at_once != 0 ? at_once : max(1u, kUnstagedBytes / ring.in_stride);
  // Small messages spend more time in transit than in service: a team claims all that are waiting, and the next team
  // claims those that arrive in the meantime. Large messages take time to serve, so the teams share them.
  const unsigned sharing = at_once != 0 ? 1 : shape.pollers;
  LaneServer server(lane, state);  // only the first thread uses its copy of the cursor
  Idle idle(shape.idle);
  while (true) {
    Claim claim;
    if (team.rank() == 0) {
      Poll polled = server.poll(most, sharing, claim);
      while (polled == Poll::nothing) {
        const std::uint64_t next = server.next();
        if (idle.wait(next) && server.leave(next)) break;
        polled = server.poll(most, sharing, claim);
      }
      idle.reset();
      if (recorder.wanted()) *claimed_ns = device_clock_ns();
    }
    // The first thread has acquired `published`; the barriers in from_first() extend that visibility to the team.
    constexpr unsigned kFirstBits = 48;
    const std::uint64_t packed = team.from_first(claim.count << kFirstBits | claim.first);
    claim = {packed & ((std::uint64_t{1} << kFirstBits) - 1), packed >> kFirstBits};
    if (claim.count == 0) break;
    if (recorder.wanted()) recorder.claimed(*claimed_ns);
    const BatchView batch{ring.in_slot(claim.first), ring.out_slot(claim.first), ring.in_stride, ring.out_stride,
                          static_cast<std::uint32_t>(claim.count)};
    serve_by(functor, team, batch, shape.granularity, recorder, stage, staging);
    // The barrier orders every thread's results before the releases that follow, which are cumulative.
    team.sync();
    if (lane.results == ResultOrder::as_finished) {
      for (std::uint64_t i = team.rank(); i < claim.count; i += team.size()) server.finish(claim.first + i);
      team.sync();
    } else if (team.rank() == 0) {
      server.complete(claim);
    }
  }
}

/// Number of flagged messages that one poll can read, given a team's registers and its `staging` bytes of shared
/// memory. Used for lanes by flags.
inline __host__ __device__ unsigned messages_per_poll(const LaneView& lane, const ResidentShape& shape,
                                                      unsigned staging) {
  const unsigned in_registers = kUnitsPerThreadOfMany * (shape.block / shape.pollers) / lane.in_slot_units;
  const auto word = static_cast<unsigned>(sizeof(std::uint32_t));
  const unsigned in_shared = (staging - word) / (lane.ring.in_stride + lane.ring.out_stride + word);
  const unsigned most = in_registers < in_shared ? in_registers : in_shared;
  return most < shape.max_flagged_per_poll ? most : shape.max_flagged_per_poll;
}

/// Serves by flags, one message at a time: each poll reads the entire next slot, kUnits units per thread. The team
/// needs shared memory for the units of one message and of one result. `copy`: the incoming slots that the team
/// watches.
template <unsigned kUnits, class F, class Group, class Recorder>
__device__ void serve_flagged(const F& functor, const Group& team, const LaneView& lane, LaneState* state,
                              const ResidentShape& shape, const Recorder& recorder, const Unit* copy,
                              std::byte* stage) {
  std::byte* const in = stage;
  std::byte* const out = stage + lane.in_units * sizeof(Unit);
  LaneServer server(lane, state);
  Idle idle(shape.idle);
  while (true) {
    const std::uint64_t number = team.from_first(server.next());
    if ((number & kGone) != 0) return;
    const std::uint32_t flag = flag_of(number);
    const Unit* const slot = lane.unit_of(copy, number);
    Unit mine[kUnits];
#pragma unroll
    for (unsigned k = 0; k < kUnits; ++k) {
      const unsigned i = team.rank() + k * team.size();
      if (i < lane.in_units) mine[k] = SystemMemory::load_unit(slot[i]);
    }
    // The first unit contains the message's length.
    const auto length = static_cast<std::uint32_t>(team.from_first(mine[0].data[2]));
    const std::uint32_t needed = min(units_needed(Unit{{0, 0, length}, 0}), lane.in_units);
    bool there = true;
#pragma unroll
    for (unsigned k = 0; k < kUnits; ++k) {
      const unsigned i = team.rank() + k * team.size();
      there = there && (i >= needed || mine[k].flag == flag);
    }
    if (!team.all(there)) {
      if (team.rank() == 0 && ((mine[0].flag & kStopFlag) != 0 || idle.wait(number))) server.leave(number);
      continue;
    }
    const bool took = team.rank() == 0 && server.take(number, 1);
#pragma unroll
    for (unsigned k = 0; k < kUnits; ++k) {
      const unsigned i = team.rank() + k * team.size();
      if (i >= needed) continue;
      auto* const to = reinterpret_cast<std::uint32_t*>(in + i * kUnitData);
      for (unsigned w = 0; w < 3; ++w) to[w] = mine[k].data[w];
    }
    // Skips the message if another poller was faster. This is also the barrier after which all staged data can be read.
    if (team.from_first(static_cast<std::uint32_t>(took)) == 0) continue;
    idle.reset();
    serve_message(functor, SharedMemoryGroup<Group>(team), in, lane.ring.in_stride, out, lane.ring.out_stride,
                  recorder);
    team.sync();
    const Header& header = *reinterpret_cast<const Header*>(out);
    const std::uint32_t units = units_of(sizeof(Header) + ((header.length & kFailed) != 0 ? 0 : header.length));
    for (unsigned i = team.rank(); i < units; i += team.size()) {
      const auto* const from = reinterpret_cast<const std::uint32_t*>(out + i * kUnitData);
      SystemMemory::store_unit(lane.unit_out(number)[i], Unit{{from[0], from[1], from[2]}, flag});
    }
  }
}

/// Serves by flags, several messages at a time: a poll reads the next slots, which are contiguous, and claims the
/// complete messages together. It reads no cursor before the slots and needs no fence after the results, so a message
/// waits for one round trip instead of three as in serve_counted. The cost is a third more bytes, plus the bytes that
/// unsuccessful polls read. A poll reads the cursor along with the slots. The messages that the cursor announces are
/// claimed before the next poll, unseen, so that teams do not read the same slots. If there are fewer of these than the
/// last poll found, the next poll also reads further slots, which another team may read as well.
template <class F, class Group, class Recorder>
__device__ void serve_flagged_many(const F& functor, const Group& team, const LaneView& lane, LaneState* state,
                                   const ResidentShape& shape, const Recorder& recorder, const Unit* copy,
                                   std::byte* stage, unsigned staging) {
  constexpr unsigned kEach = kUnitsPerThreadOfMany;
  const unsigned in_stride = lane.ring.in_stride, out_stride = lane.ring.out_stride, slot = lane.in_slot_units;
  const unsigned most = messages_per_poll(lane, shape, staging);
  std::byte *const in = stage, *const out = in + most * in_stride;
  auto* const needed = reinterpret_cast<std::uint32_t*>(out + most * out_stride);  // number of units, by message
  std::uint32_t& missing = needed[most];                                           // the first incomplete message
  LaneServer server(lane, state);
  Idle idle(shape.idle);
  // Used by the first thread only: the messages that are claimed but not yet seen complete, and the minimum number of
  // messages to poll.
  Claim held;
  std::uint64_t guess = 1;
  constexpr unsigned kNumberBits = 48;
  while (true) {
    std::uint64_t next = 0;
    if (team.rank() == 0) {
      const bool holds = held.count != 0 || server.take_hinted(most, held);
      next = holds ? held.first : server.next();
      if ((next & kGone) == 0) next |= min(std::uint64_t{most}, max(held.count, guess)) << kNumberBits;
    }
    next = team.from_first(next);
    if ((next & kGone) != 0) return;
    if (team.rank() == 0) server.read_hint();
    const std::uint64_t number = next & ((std::uint64_t{1} << kNumberBits) - 1);
    const auto wanted = static_cast<unsigned>(next >> kNumberBits);
    Unit mine[kEach];
#pragma unroll
    for (unsigned k = 0; k < kEach; ++k) {
      const unsigned i = team.rank() + k * team.size(), m = i / slot, unit = i % slot;
      if (m < wanted && unit < lane.in_units) mine[k] = SystemMemory::load_unit(lane.unit_of(copy, number + m)[unit]);
    }
    if (team.rank() == 0) missing = wanted;
#pragma unroll
    for (unsigned k = 0; k < kEach; ++k) {  // a message's first unit contains its length
      const unsigned i = team.rank() + k * team.size(), m = i / slot;
      if (m < wanted && i % slot == 0) needed[m] = min(units_needed(mine[k]), lane.in_units);
    }
    team.sync();
#pragma unroll
    for (unsigned k = 0; k < kEach; ++k) {
      const unsigned i = team.rank() + k * team.size(), m = i / slot;
      if (m < wanted && i % slot < needed[m] && mine[k].flag != flag_of(number + m)) atomicMin(&missing, m);
    }
    team.sync();
    const unsigned whole = missing;
    // This round serves the messages before `known`, which were held, and the messages after the gap. Other pollers
    // have already claimed the messages in the gap.
    std::uint64_t packed = 0;
    constexpr unsigned kBits = 16, kMask = (1u << kBits) - 1;
    if (team.rank() == 0) {
      const std::uint64_t of_held = min(std::uint64_t{whole}, held.count);
      Claim seen{number + of_held, 0};
      if (whole > of_held) server.take_seen(seen.first, whole - of_held, seen);
      packed = (of_held + seen.count) << 2 * kBits | (seen.first - number - of_held) << kBits | of_held;
      held = {number + of_held, held.count - of_held};
      guess = whole + whole / 4 + 1;  // as many as this poll found, plus a quarter for variation, plus one
      if (whole == 0) {
        const bool stop = (mine[0].flag & kStopFlag) != 0;
        if (stop) held = {};  // the stop flag has overwritten these messages
        if (stop || (held.count == 0 && idle.wait(number))) server.leave(number);
      } else {
        idle.reset();
      }
    }
    packed = team.from_first(packed);
    const auto known = static_cast<unsigned>(packed) & kMask, gap = static_cast<unsigned>(packed >> kBits) & kMask,
               count = static_cast<unsigned>(packed >> 2 * kBits);
    if (count == 0) continue;
#pragma unroll
    for (unsigned k = 0; k < kEach; ++k) {
      const unsigned i = team.rank() + k * team.size(), m = i / slot, unit = i % slot;
      if ((m >= known && m < known + gap) || m >= count + gap || unit >= needed[m]) continue;
      std::byte* const message = in + (m < known ? m : m - gap) * in_stride;
      for (unsigned w = 0, at = unit * kUnitData; w < 3 && at < in_stride; ++w, at += sizeof(std::uint32_t)) {
        *reinterpret_cast<std::uint32_t*>(message + at) = mine[k].data[w];
      }
    }
    team.sync();
    Granularity granularity = shape.granularity;
    if (granularity == Granularity::automatic) {
      const Granularity large = count >= team.size() / 32 ? Granularity::warp : Granularity::block;
      granularity = in_stride <= kLargestPerThread ? Granularity::thread : large;
    }
    serve_each(functor, team, BatchView{in, out, in_stride, out_stride, count}, granularity, recorder);
    team.sync();
    for (unsigned i = team.rank(); i < count * lane.out_slot_units; i += team.size()) {
      const unsigned m = i / lane.out_slot_units, unit = i % lane.out_slot_units;
      const std::byte* const result = out + m * out_stride;
      const unsigned units = units_of(sizeof(Header) + payload_bytes(*reinterpret_cast<const Header*>(result)));
      if (unit >= units) continue;
      const std::uint64_t done = number + (m < known ? m : m + gap);
      Unit whole_unit{{}, flag_of(done)};
      for (unsigned w = 0, at = unit * kUnitData; w < 3 && at < out_stride; ++w, at += sizeof(std::uint32_t)) {
        whole_unit.data[w] = *reinterpret_cast<const std::uint32_t*>(result + at);
      }
      SystemMemory::store_unit(lane.unit_out(done)[unit], whole_unit);
    }
  }
}

inline __device__ unsigned dynamic_shared_bytes() {
  unsigned bytes;
  asm("mov.u32 %0, %dynamic_smem_size;" : "=r"(bytes));
  return bytes;
}

/// One kernel per form of lane and kind of team, because small code stays in the caches next to the SM. A lone message
/// executes all of the code once; with larger code it would wait for the L2 at every jump.
template <class F, class Recorder, unsigned form, bool by_warp>
__global__ void __launch_bounds__(1024) resident_kernel(F functor, const LaneView* lanes, ResidentShape shape) {
  extern __shared__ uint4 stage[];
  __shared__ LaneState state;
  __shared__ TeamScratch scratch[kMaxPollers];
  __shared__ std::uint64_t claimed_ns[kMaxPollers];
  const LaneView lane = lanes[blockIdx.x];
  const Recorder recorder(lane.recorder);
  if (threadIdx.x == 0) state = lane_start(lane, shape.pollers);
  __syncthreads();
  const unsigned size = blockDim.x / shape.pollers, poller = threadIdx.x / size;
  const unsigned staging = dynamic_shared_bytes() / shape.pollers & ~15u;
  std::byte* const mine = reinterpret_cast<std::byte*>(stage) + poller * staging;
  static_assert(kMaxMirrors >= kMaxPollers);
  const Unit* const copy = lanes[blockIdx.x].flagged_in[poller % lane.mirrors];
  const auto serve = [&](const auto& team) {
    if constexpr (form == kMany) {
      serve_flagged_many(functor, team, lane, &state, shape, recorder, copy, mine, staging);
    } else if constexpr (form != 0) {
      serve_flagged<form>(functor, team, lane, &state, shape, recorder, copy, mine);
    } else {
      serve_counted(functor, team, lane, &state, shape, recorder, &claimed_ns[poller], mine, staging);
    }
    team.sync();
    if (team.rank() == 0) {
      LaneServer server(lane, &state);
      server.depart();
    }
  };
  if constexpr (by_warp) {
    serve(OneWarp{});
  } else {
    serve(Team(poller, size, &scratch[poller]));
  }
}

}  // namespace feedrate
