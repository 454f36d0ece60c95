#include <array>
#include <atomic>
#include <thread>

#include "common/error.hpp"
#include "common/threads/threads.hpp"
#include "kernels/launch.cuh"
#include "kernels/stages/stage.cuh"
#include "variants/overlap/buffers.hpp"
#ifdef __CUDACC__
#include <cuda/atomic>

#include "common/device/cuda_check.hpp"
#endif

namespace feedrate {
namespace {

constexpr unsigned kMaxStages = 8;
constexpr std::uint64_t kLongestRunNs = 20'000'000'000;  // after this the kernel gives up, in case a flag is never set

/// The progress of a run's stages, in words that all stages can access.
struct Progress {
  /// Number of items that each stage has written and read.
  std::uint64_t ready[kMaxStages], read[kMaxStages];
  std::uint64_t given_up;
};

/// The arguments of the kernel.
struct PersistentPlan {
  StageWork work[kMaxStages];
  std::byte* buffers[kMaxStages];  ///< `slots` items after each stage except the last
  const std::byte* sources;
  std::byte* results;
  std::size_t item_bytes, source_bytes, result_bytes;
  unsigned stages, slots, blocks, items;  ///< `blocks` is per stage
  bool waits_for_ready, waits_for_free;
  Progress* progress;
  unsigned* arrived;  ///< indexed by stage and item: number of blocks that have completed it

  FEEDRATE_HD const std::byte* in(unsigned s, unsigned item) const {
    return s == 0 ? sources + item * source_bytes : buffers[s - 1] + item % slots * item_bytes;
  }
  FEEDRATE_HD std::byte* out(unsigned s, unsigned item) const {
    return s + 1 == stages ? results + item * result_bytes : buffers[s] + item % slots * item_bytes;
  }
};

constexpr unsigned kThreads = 256;

#ifdef __CUDACC__
__device__ std::uint64_t global_ns() {
  std::uint64_t ns = 0;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
  return ns;
}

/// Waits until `word` is above `least`. False if this block or another one gave up.
__device__ bool await_above(std::uint64_t& word, std::uint64_t least, Progress& progress, std::uint64_t deadline) {
  cuda::atomic_ref<std::uint64_t, cuda::thread_scope_device> watched(word), given_up(progress.given_up);
  unsigned pause = 32;
  while (watched.load(cuda::memory_order_acquire) <= least) {
    if (given_up.load(cuda::memory_order_relaxed) != 0) return false;
    if (global_ns() > deadline) {
      given_up.store(1, cuda::memory_order_relaxed);
      return false;
    }
    __nanosleep(pause);
    pause = min(2 * pause, 256u);
  }
  return true;
}

/// Blocks `s * blocks` to `(s + 1) * blocks - 1` run stage s for one item after another. All blocks must be resident on
/// the GPU at once.
__global__ void __launch_bounds__(kThreads) persistent_kernel(PersistentPlan plan) {
  __shared__ std::uint64_t partial[kThreads / 32];
  __shared__ bool go_on;
  const unsigned s = blockIdx.x / plan.blocks, block = blockIdx.x % plan.blocks;
  const bool first = s == 0, last = s + 1 == plan.stages;
  Progress& progress = *plan.progress;
  const std::uint64_t deadline = global_ns() + kLongestRunNs;
  for (unsigned item = 0; item < plan.items; ++item) {
    if (threadIdx.x == 0) {
      go_on = true;
      if (!first && plan.waits_for_ready) go_on = await_above(progress.ready[s - 1], item, progress, deadline);
      if (go_on && !last && plan.waits_for_free && item >= plan.slots) {
        go_on = await_above(progress.read[s + 1], item - plan.slots, progress, deadline);
      }
    }
    __syncthreads();  // makes what the first thread has acquired visible to all threads
    if (!go_on) return;
    work_as_block(plan.work[s], plan.in(s, item), plan.out(s, item), block, plan.blocks, partial);
    if (threadIdx.x != 0) continue;
    // The last block to arrive publishes progress for all blocks: each block's own increment released its work.
    cuda::atomic_ref<unsigned, cuda::thread_scope_device> arrived(plan.arrived[s * plan.items + item]);
    if (arrived.fetch_add(1, cuda::memory_order_acq_rel) + 1 != plan.blocks) continue;
    // The last block of an item may get here after the last block of the next item: the greater number counts.
    cuda::atomic_ref<std::uint64_t, cuda::thread_scope_device> ready(progress.ready[s]), read(progress.read[s]);
    ready.fetch_max(item + 1, cuda::memory_order_acq_rel);
    read.fetch_max(item + 1, cuda::memory_order_acq_rel);
  }
}
void (*const kKernel)(PersistentPlan) = persistent_kernel;
#else
void (*const kKernel)(PersistentPlan) = nullptr;
#endif

/// The same on the CPU, with one thread per stage.
void run_on_threads(const PersistentPlan& plan) {
  std::array<std::atomic<std::uint64_t>, kMaxStages> done{};
  std::vector<std::jthread> threads;
  for (unsigned s = 0; s < plan.stages; ++s) {
    threads.emplace_back([&, s] {
      const bool first = s == 0, last = s + 1 == plan.stages;
      Backoff backoff;
      const auto await_above = [&](unsigned stage, std::uint64_t least) {
        for (backoff.reset(); done[stage].load(std::memory_order_acquire) <= least;) backoff.wait();
      };
      for (unsigned item = 0; item < plan.items; ++item) {
        if (!first && plan.waits_for_ready) await_above(s - 1, item);
        if (!last && plan.waits_for_free && item >= plan.slots) await_above(s + 1, item - plan.slots);
        work_alone(plan.work[s], plan.in(s, item), plan.out(s, item));
        done[s].store(item + 1, std::memory_order_release);
      }
    });
  }
}

/// Every stage stays on the device for the entire run, on its own SMs, and passes items on by flags in the GPU's
/// memory, with no launch, no event and no host involvement between two stages.
class Persistent final : public Strategy {
 public:
  explicit Persistent(const StrategyConfig& config)
      : pipeline_(config.pipeline),
        device_(config.device()),
        slots_(depth_of(config.own)),
        flags_(device_.allocate_device(sizeof(Progress) + pipeline_.stages() * config.items * sizeof(unsigned))),
        zeros_(device_.allocate_host(flags_.size(), HostMemory::pinned)),
        stream_(device_.stream()) {
    for (unsigned s = 0; s + 1 < pipeline_.stages(); ++s) {
      buffers_.push_back(device_.allocate_device(slots_ * pipeline_.bytes()));
      plan_.buffers[s] = buffers_.back().data();
    }
    for (unsigned s = 0; s < pipeline_.stages(); ++s) plan_.work[s] = pipeline_.work(s);
    plan_.sources = pipeline_.source(0);
    plan_.results = pipeline_.result(0);
    plan_.item_bytes = pipeline_.bytes();
    plan_.source_bytes = static_cast<std::size_t>(pipeline_.source(1) - pipeline_.source(0));
    plan_.result_bytes = static_cast<std::size_t>(pipeline_.result(1) - pipeline_.result(0));
    plan_.stages = pipeline_.stages();
    plan_.slots = slots_;
    plan_.blocks = pipeline_.shape().blocks;
    plan_.waits_for_ready = config.waits_for(kReady);
    plan_.waits_for_free = config.waits_for(kFree);
    plan_.progress = reinterpret_cast<Progress*>(flags_.data());
    plan_.arrived = reinterpret_cast<unsigned*>(flags_.data() + sizeof(Progress));
  }

  void run(unsigned items) override {
    plan_.items = items;
    if (device_.kind() == "cpu") return run_on_threads(plan_);
    stream_->copy_to_device(flags_.data(), zeros_.data(), flags_.size());
    stream_->launch(KernelLaunch(
        kKernel, {plan_.stages * plan_.blocks, kThreads}, [this] { run_on_threads(plan_); }, plan_));
    // Copy back only the word that records whether the kernel gave up; the other words of zeros_ stay zero.
    auto* const given_up = reinterpret_cast<std::uint64_t*>(zeros_.data() + offsetof(Progress, given_up));
    stream_->copy_to_host(reinterpret_cast<std::byte*>(given_up), flags_.data() + offsetof(Progress, given_up),
                          sizeof *given_up);
    stream_->synchronize();
    if (std::exchange(*given_up, 0) != 0) throw Failure("the persistent kernel gave up: a stage waited too long");
  }

 private:
  const Pipeline& pipeline_;
  Device& device_;
  unsigned slots_;
  std::vector<Buffer> buffers_;
  Buffer flags_, zeros_;
  PersistentPlan plan_{};
  std::unique_ptr<Stream> stream_;  // last: it waits for the kernel
};

std::string why_unsupported(const PipelineShape& shape, std::span<Device* const> devices) {
  if (shape.stages.size() > kMaxStages) return "strategy persistent allows at most 8 stages";
  for (const StagePlan& stage : shape.stages) {
    if (is_copy(stage.role)) return "strategy persistent runs kernels only; this pipeline copies from or to the host";
  }
  if (devices.front()->kind() == "cpu") return "";
#ifdef __CUDACC__
  int at_once = 0;
  check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&at_once, persistent_kernel, kThreads, 0),
        "cudaOccupancyMaxActiveBlocksPerMultiprocessor");
  const std::size_t fit = static_cast<std::size_t>(at_once) * devices.front()->info().processors;
  const std::size_t wanted = shape.stages.size() * shape.blocks;
  if (wanted > fit) {
    return "strategy persistent needs all of its " + std::to_string(wanted) + " blocks on the GPU at once; only " +
           std::to_string(fit) + " fit";
  }
#endif
  return "";
}

const StrategyRegistration registered(
    "persistent",
    {.description = "stages as resident blocks that pass items on by flags in the GPU's memory",
     .axes = depth_axes().list(),
     .waits = {kReady, kFree},
     .buffers = [](const Values& own) { return depth_of(own); },
     .why_unsupported = why_unsupported,
     .make = make_strategy<Persistent>,
     .resident_blocks =
         [](const PipelineShape& shape) { return static_cast<unsigned>(shape.stages.size()) * shape.blocks; }});

}  // namespace
}  // namespace feedrate
