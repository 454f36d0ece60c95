#include <algorithm>
#include <bit>
#include <limits>
#include <vector>

#include "common/device/device_clock.hpp"
#include "common/device/polled_memory.hpp"
#include "common/ring/flags.hpp"
#include "experiments/harness/limits/cuda_probe.hpp"
#include "kernels/serving/group.hpp"

/// Limits of kernels that poll for the host or for a point in time: no resident queue can be faster.
namespace feedrate {
namespace {

constexpr unsigned kTrips = 1000;

/// Answers one word after another; exits if the host sends nothing for two seconds.
__global__ void answer_kernel(std::uint64_t* question, std::uint64_t* answer, std::uint64_t trips) {
  std::uint64_t since = 0, now = 0;
  for (std::uint64_t i = 1; i <= trips; ++i) {
    since = device_clock_ns();
    while (SystemMemory::load_relaxed(*question) < i) {
      now = device_clock_ns();
      if (now - since > 2'000'000'000) return;
    }
    SystemMemory::store_relaxed(*answer, i);
  }
}

/// Distance between slots in units, rounded up to complete cache lines.
constexpr unsigned lone_step(unsigned bytes) { return (units_of(bytes) + 7) / 8 * 8; }

/// Each poller's copy of the slots.
struct LoneCopies {
  Unit* in[kMaxPollers];
};

/// Returns lone messages, with one added to every word: a floor for any queue's lone messages. Each team polls its own
/// copy of the slots, a power of two, and has one thread per unit. The slots have in-band ready flags
/// (common/ring/flags.hpp).
template <class Group>
__device__ void answer_lone(const Group& team, const Unit* in, Unit* out, unsigned bytes, unsigned slots,
                            std::uint64_t trips, std::uint64_t* next) {
  const unsigned mine = team.rank(), units = units_of(bytes);
  std::uint64_t since = 0, now = 0;
  since = device_clock_ns();
  now = since;
  while (true) {
    const std::uint64_t number = team.from_first(SystemMemory::lane_peek(*next));
    if (number >= trips) return;
    const std::size_t slot = (number & (slots - 1)) * lone_step(bytes);
    Unit unit{};
    if (mine < units) unit = SystemMemory::load_unit(in[slot + mine]);
    if (!team.all(mine >= units || unit.flag == flag_of(number))) {
      now = device_clock_ns();
      if (!team.all(now - since <= 2'000'000'000)) return;
      continue;
    }
    const bool won = mine == 0 && SystemMemory::lane_exchange(*next, number, number + 1);
    if (team.from_first(static_cast<std::uint32_t>(won)) == 0) continue;
    for (auto& word : unit.data) ++word;
    if (mine < units) SystemMemory::store_unit(out[slot + mine], unit);
    since = now;
  }
}

/// Runs as one block.
template <bool by_warp>
__global__ void __launch_bounds__(1024)
    lone_kernel(LoneCopies copies, Unit* out, unsigned bytes, unsigned slots, unsigned pollers, std::uint64_t trips) {
  __shared__ std::uint64_t next;
  __shared__ TeamScratch scratch[kMaxPollers];
  if (threadIdx.x == 0) next = 0;
  __syncthreads();
  const unsigned size = blockDim.x / pollers, poller = threadIdx.x / size;
  const Unit* const copy = copies.in[poller];
  if constexpr (by_warp) {
    answer_lone(OneWarp{}, copy, out, bytes, slots, trips, &next);
  } else {
    answer_lone(Team(poller, size, &scratch[poller]), copy, out, bytes, slots, trips, &next);
  }
}

constexpr unsigned kRoundBytes = 64 * 80;  // 64 messages of 64 B, each with a header of 16 B
constexpr unsigned kRoundBlocks = 56, kRoundThreads = kRoundBytes / sizeof(uint4), kRounds = 200;

/// The GPU's work for a queue with cursors, without a queue or a host. At its due time, each block in turn polls a word
/// in host memory, reads a batch of messages with one piece per thread, writes the batch back and releases another
/// word. `took` is the time from the due time to the release, in ns.
__global__ void round_kernel(const uint4* in, uint4* out, std::uint64_t* words, std::uint64_t period_ns, float* took) {
  std::uint64_t& polled = words[32 * blockIdx.x];
  std::uint64_t& released = words[32 * blockIdx.x + 16];
  // Due times are on a grid of periods, so that the blocks' turns stay apart regardless of their launch times.
  std::uint64_t due = (device_clock_ns() / period_ns + 2) * period_ns + period_ns * blockIdx.x / gridDim.x;
  for (unsigned round = 0; round < kRounds; ++round, due += period_ns) {
    if (threadIdx.x == 0) {
      while (device_clock_ns() < due) {
      }
      SystemMemory::load_acquire(polled);
    }
    __syncthreads();
    const std::size_t at = (std::size_t{blockIdx.x} * kRounds + round) * kRoundThreads + threadIdx.x;
    uint4 piece = in[at];
    ++piece.x;
    out[at] = piece;
    __syncthreads();
    if (threadIdx.x != 0) continue;
    SystemMemory::store_release(released, round + 1);
    took[blockIdx.x * kRounds + round] = static_cast<float>(device_clock_ns() - due);
  }
}

double lone_message_ns(Device& device, unsigned bytes, unsigned pollers, unsigned slots) {
  const unsigned units = units_of(bytes), warps = (units + 31) / 32;
  const std::size_t size = std::size_t{slots} * lone_step(bytes) * sizeof(Unit);
  PolledMemory memory(device, pollers + 1);
  LoneCopies copies{};
  for (unsigned poller = 0; poller < pollers; ++poller) {
    copies.in[poller] = reinterpret_cast<Unit*>(memory.read_by_device(size));
  }
  auto* out = reinterpret_cast<Unit*>(memory.written_by_device(size));
  const OneStream stream;
  constexpr std::uint64_t kAll = kTrips + kTrips / 10;  // median_ns uses another tenth as warm-up
  const auto kernel = warps == 1 ? lone_kernel<true> : lone_kernel<false>;
  kernel<<<1, 32 * warps * pollers, 0, stream>>>(copies, out, bytes, slots, pollers, kAll);
  check(cudaGetLastError(), "kernel launch");
  std::vector<std::uint32_t> message(units * kUnitData / 4 + 4);
  std::uint64_t trip = 0, wrong = 0;
  const double median = median_ns(kTrips, [&] {
    const std::size_t slot = (trip & (slots - 1)) * lone_step(bytes);
    const auto word = static_cast<std::uint32_t>(trip);
    std::fill(message.begin(), message.end(), word);
    for (unsigned poller = 0; poller < pollers; ++poller) {
      store_flagged(copies.in[poller] + slot, trip, reinterpret_cast<const std::byte*>(message.data()), units);
    }
    for (std::uint32_t i = 0; i < units; ++i) {
      Unit unit = SystemMemory::load_unit(out[slot + i]);
      for (std::uint64_t polls = 1; unit.flag != flag_of(trip); ++polls) {
        if (polls % 1'000'000 == 0 && cudaStreamQuery(stream) != cudaErrorNotReady)
          throw Failure("the kernel for lone messages ended early");
        unit = SystemMemory::load_unit(out[slot + i]);
      }
      wrong |= (unit.data[0] ^ (word + 1)) | (unit.data[1] ^ (word + 1)) | (unit.data[2] ^ (word + 1));
    }
    ++trip;
  });
  stream.wait();
  if (wrong != 0) throw Failure("the kernel for lone messages returned wrong answers");
  return median;
}

/// Median time in ns for `bytes` to a polling kernel and back, with one added to each word, for the fastest number of
/// `pollers`. More pollers read the line more often, but the host must write a copy for each.
double lone_message_ns(LimitProbe& probe, unsigned bytes, std::initializer_list<unsigned> pollers) {
  // Many slots, so that each message is written to lines that were not read recently; or as many as fit into a page,
  // which can be placed.
  const auto fit = static_cast<unsigned>(std::bit_floor(PolledMemory::kPage / (lone_step(bytes) * sizeof(Unit))));
  double shortest = std::numeric_limits<double>::infinity();
  for (const unsigned n : pollers) {
    for (const unsigned slots : {64u, fit}) {
      if (slots != 0) shortest = std::min(shortest, lone_message_ns(probe.device(), bytes, n, slots));
    }
  }
  return shortest;
}

/// The `share` quantile, in ns, of the time that a queue with cursors takes on the GPU per batch, while all blocks
/// together use half the bandwidth of the SMs.
double round_ns(LimitProbe& probe, double share) {
  const Buffer &in = probe.host(0), &out = probe.host(1);
  const double bytes_per_second = sm_echo_bytes_per_second(probe);
  const Buffer words = probe.device().allocate_host(std::size_t{kRoundBlocks} * 256, HostMemory::pinned);
  const Buffer near = probe.device().allocate_device(std::size_t{kRoundBlocks} * kRounds * sizeof(float));
  const OneStream stream;
  static_assert(LimitProbe::kLarge >= std::size_t{kRoundBlocks} * kRounds * kRoundBytes);
  const auto period_ns = static_cast<std::uint64_t>(1e9 * kRoundBlocks * kRoundBytes / (bytes_per_second / 2));
  constexpr unsigned kRuns = 10;
  std::vector<float> all, took(near.size() / sizeof(float));
  for (unsigned run = 0; run <= kRuns; ++run) {
    round_kernel<<<kRoundBlocks, kRoundThreads, 0, stream>>>(
        reinterpret_cast<const uint4*>(in.data()), reinterpret_cast<uint4*>(out.data()),
        reinterpret_cast<std::uint64_t*>(words.data()), period_ns, reinterpret_cast<float*>(near.data()));
    copy(took.data(), near.data(), near.size(), cudaMemcpyDeviceToHost, stream);
    stream.wait();
    if (run != 0) all.insert(all.end(), took.begin(), took.end());  // the first run is a warm-up
  }
  const auto at = all.begin() + static_cast<std::ptrdiff_t>(share * static_cast<double>(all.size() - 1));
  std::nth_element(all.begin(), at, all.end());
  return *at;
}

/// Median time in ns for one word to a polling kernel and back.
double word_round_trip_ns(LimitProbe& probe, bool placed) {
  PolledMemory memory(probe.device(), 2);
  constexpr std::size_t kBytes = sizeof(std::uint64_t);
  auto* question =
      reinterpret_cast<std::uint64_t*>(placed ? memory.read_by_device(kBytes) : memory.written_by_device(kBytes));
  auto* answer = reinterpret_cast<std::uint64_t*>(memory.written_by_device(kBytes));
  const OneStream stream;
  constexpr std::uint64_t kAll = kTrips + kTrips / 10;  // median_ns uses another tenth as warm-up
  answer_kernel<<<1, 1, 0, stream>>>(question, answer, kAll);
  check(cudaGetLastError(), "kernel launch");
  std::uint64_t trip = 0;
  const double median = median_ns(kTrips, [&] {
    SystemMemory::store_relaxed(*question, ++trip);
    while (SystemMemory::load_relaxed(*answer) < trip && cudaStreamQuery(stream) == cudaErrorNotReady) {
      for (unsigned spin = 0; spin < 20'000 && SystemMemory::load_relaxed(*answer) < trip; ++spin) {
      }
    }
  });
  stream.wait();
  if (SystemMemory::load_relaxed(*answer) != kAll) throw Failure("the answering kernel ended early");
  return median;
}

const DeviceLimitRegistration registered{
    {"word_round_trip_ns",
     {kNs, "one word to a polling kernel and back, in the pages where that is fastest, median", on_bus,
      [](LimitProbe& probe) { return word_round_trip_ns(probe, true); }, has_gpu}},
    {"misplaced_word_round_trip_ns",
     {kNs, "the same as word_round_trip_ns, but the kernel polls a page that the GPU reads slowly", on_bus,
      [](LimitProbe& probe) { return word_round_trip_ns(probe, false); }, has_gpu}},
    {"lone_message_ns",
     {kNs, "64 B to a polling kernel and back, no header, median; best of 2, 4 and 8 pollers with 32 and 64 slots",
      on_bus,
      [](LimitProbe& probe) {
        return lone_message_ns(probe, 64, {2, 4, 8});
      },
      has_gpu}},
    {"lone_4k_message_ns",
     {kNs, "4 KiB to a polling kernel and back, no header, median; best of 1 and 2 pollers", on_bus,
      [](LimitProbe& probe) {
        return lone_message_ns(probe, 4096, {1, 2});
      },
      has_gpu}},
    {"round_ns",
     {kNs, "poll a word, read 64 messages of 80 B, write them, release a word: 56 blocks at half the SM echo, median",
      on_bus, [](LimitProbe& probe) { return round_ns(probe, 0.5); }, has_gpu}},
    {"round_p99_ns",
     {kNs, "the same as round_ns, 99th percentile", on_bus, [](LimitProbe& probe) { return round_ns(probe, 0.99); },
      has_gpu}}};

}  // namespace
}  // namespace feedrate
