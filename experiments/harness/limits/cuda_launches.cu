#include <functional>
#include <vector>

#include "experiments/harness/limits/cuda_probe.hpp"

/// Limits of single calls: launches, small copies and graphs of both.
namespace feedrate {
namespace {

constexpr std::size_t kSmall = 64;  // bytes

__global__ void empty_kernel() {}

/// An executable graph, from the graph that `fill(graph)` fills.
class ReadyGraph {
 public:
  template <class Fill>
  explicit ReadyGraph(const Fill& fill) {
    check(cudaGraphCreate(&graph_, 0), "cudaGraphCreate");
    fill(graph_);
    check(cudaGraphInstantiate(&ready_, graph_, 0), "cudaGraphInstantiate");
  }
  ~ReadyGraph() {
    cudaGraphExecDestroy(ready_);
    cudaGraphDestroy(graph_);
  }
  ReadyGraph(const ReadyGraph&) = delete;
  ReadyGraph& operator=(const ReadyGraph&) = delete;
  void launch(cudaStream_t stream) const { check(cudaGraphLaunch(ready_, stream), "cudaGraphLaunch"); }

 private:
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t ready_ = nullptr;
};

cudaGraphNode_t add_kernel(cudaGraph_t graph, void* kernel, unsigned threads, void** arguments, cudaGraphNode_t after) {
  cudaKernelNodeParams parameters{};
  parameters.func = kernel;
  parameters.gridDim = 1;
  parameters.blockDim = threads;
  parameters.kernelParams = arguments;
  cudaGraphNode_t node = nullptr;
  check(
      cudaGraphAddKernelNode(&node, graph, after == nullptr ? nullptr : &after, after == nullptr ? 0 : 1, &parameters),
      "cudaGraphAddKernelNode");
  return node;
}

double graph_launch_sync_ns(LimitProbe&) {
  void* no_arguments[] = {nullptr};
  const ReadyGraph graph(
      [&](cudaGraph_t made) { add_kernel(made, reinterpret_cast<void*>(empty_kernel), 1, no_arguments, nullptr); });
  return median_run_ns([&](cudaStream_t stream) { graph.launch(stream); });
}

/// Parallel chains in a graph, executed per second. Eight launches of the graph are queued at a time.
double graph_chains_per_second(const std::function<void(cudaGraph_t, std::size_t index)>& add_chain) {
  constexpr std::size_t kChains = 64;
  const ReadyGraph graph([&](cudaGraph_t made) {
    for (std::size_t i = 0; i < kChains; ++i) add_chain(made, i);
  });
  return 8 * kChains * runs_per_second([&](cudaStream_t stream) {
           for (int i = 0; i < 8; ++i) graph.launch(stream);
         });
}

cudaGraphNode_t add_echo(cudaGraph_t graph, const std::byte* in, std::byte* out, cudaGraphNode_t after) {
  const auto* from = reinterpret_cast<const uint4*>(in);
  auto* to = reinterpret_cast<uint4*>(out);
  std::size_t pieces = 4;
  void* arguments[] = {&from, &to, &pieces};
  return add_kernel(graph, reinterpret_cast<void*>(echo_kernel), 32, arguments, after);
}

double launch_sync_ns(LimitProbe&) {
  return median_run_ns([](cudaStream_t stream) { empty_kernel<<<1, 1, 0, stream>>>(); });
}

double launch_per_second(LimitProbe&) {
  return 100 * runs_per_second([](cudaStream_t stream) {
           for (int i = 0; i < 100; ++i) empty_kernel<<<1, 1, 0, stream>>>();
         });
}

double mapped_launch_sync_ns(LimitProbe& probe) {
  const auto* in = pieces(probe.host(0));
  auto* out = mutable_pieces(probe.host(1));
  return median_run_ns(
      [&](cudaStream_t stream) { echo_kernel<<<1, 32, 0, stream>>>(in, out, kSmall / sizeof(uint4)); });
}

double copy_launch_copy_ns(LimitProbe& probe) {
  const Buffer &in = probe.host(0), &out = probe.host(1), &near_in = probe.near(0), &near_out = probe.near(1);
  return median_run_ns([&](cudaStream_t stream) {
    copy(near_in.data(), in.data(), kSmall, cudaMemcpyHostToDevice, stream);
    echo_kernel<<<1, 32, 0, stream>>>(pieces(near_in), mutable_pieces(near_out), kSmall / sizeof(uint4));
    copy(out.data(), near_out.data(), kSmall, cudaMemcpyDeviceToHost, stream);
  });
}

double copy_queued_ns(LimitProbe& probe) {
  constexpr int kQueued = 256;
  const Buffer &in = probe.host(0), &near_in = probe.near(0);
  return 1e9 / kQueued / runs_per_second([&](cudaStream_t stream) {
           for (int i = 0; i < kQueued; ++i) copy(near_in.data(), in.data(), kSmall, cudaMemcpyHostToDevice, stream);
         });
}

double graph_kernels_per_second(LimitProbe& probe) {
  const Buffer &in = probe.host(0), &out = probe.host(1);
  return graph_chains_per_second([&](cudaGraph_t graph, std::size_t i) {
    add_echo(graph, in.data() + i * kSmall, out.data() + i * kSmall, nullptr);
  });
}

double graph_copies_per_second(LimitProbe& probe) {
  const Buffer &in = probe.host(0), &out = probe.host(1), &near_in = probe.near(0), &near_out = probe.near(1);
  return graph_chains_per_second([&](cudaGraph_t graph, std::size_t i) {
    const std::size_t at = i * kSmall;
    cudaGraphNode_t copied_in = nullptr, copied_out = nullptr;
    check(cudaGraphAddMemcpyNode1D(&copied_in, graph, nullptr, 0, near_in.data() + at, in.data() + at, kSmall,
                                   cudaMemcpyHostToDevice),
          "cudaGraphAddMemcpyNode1D");
    const auto worked = add_echo(graph, near_in.data() + at, near_out.data() + at, copied_in);
    check(cudaGraphAddMemcpyNode1D(&copied_out, graph, &worked, 1, out.data() + at, near_out.data() + at, kSmall,
                                   cudaMemcpyDeviceToHost),
          "cudaGraphAddMemcpyNode1D");
  });
}

double batched_copies_per_second(LimitProbe& probe) {
  constexpr std::size_t kCopies = 64;
  const auto to_device = probe.device().stream(), to_host = probe.device().stream();
  std::vector<Copy> ins, outs;
  for (std::size_t at = 0; at < kCopies * kSmall; at += kSmall) {
    ins.push_back({probe.near(0).data() + at, probe.host(0).data() + at, kSmall});
    outs.push_back({probe.host(1).data() + at, probe.near(1).data() + at, kSmall});
  }
  return kCopies * per_second(kReadingSeconds, [&] {
           to_device->copy_batch(ins, Direction::to_device);
           to_host->copy_batch(outs, Direction::to_host);
           to_device->synchronize();
           to_host->synchronize();
         });
}

const DeviceLimitRegistration registered{
    {"launch_sync_ns", {kNs, "empty kernel: launch and synchronize, median", on_gpu, launch_sync_ns, has_gpu}},
    {"launch_per_second", {kPerSecond, "empty kernels queued in one stream", on_gpu, launch_per_second, has_gpu}},
    {"graph_launch_sync_ns",
     {kNs, "graph of one empty kernel: launch and synchronize, median", on_gpu, graph_launch_sync_ns, has_gpu}},
    {"mapped_launch_sync_ns",
     {kNs, "kernel that reads and writes 64 B of pinned memory: launch and synchronize, median", on_bus,
      mapped_launch_sync_ns, has_gpu}},
    {"copy_launch_copy_ns",
     {kNs, "64 B: copy in, kernel, copy out, synchronize, median", on_bus, copy_launch_copy_ns, has_gpu}},
    {"copy_queued_ns",
     {kNs, "64 B copies to the device, queued in one stream, per copy", on_bus, copy_queued_ns, has_gpu}},
    {"graph_kernels_per_second",
     {kPerSecond, "kernels that read and write 64 B of pinned memory, 64 in parallel in a graph", on_bus,
      graph_kernels_per_second, has_gpu}},
    {"graph_chains_per_second",
     {kPerSecond, "64 B: copy in, kernel, copy out; 64 such chains in parallel in a graph", on_bus,
      graph_copies_per_second, has_gpu}},
    {"batched_copies_per_second",
     {kPerSecond,
      "64 B copies in batched calls of 64 by one thread, one call each way at once, then a wait; each way; needs CUDA "
      "13",
      on_bus, batched_copies_per_second,
      [](const DeviceInfo& device) { return has_gpu(device) && CUDART_VERSION >= 13000; }}}};

}  // namespace
}  // namespace feedrate
