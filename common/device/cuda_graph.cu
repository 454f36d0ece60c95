#include <cstring>
#include <vector>

#include "common/device/cuda_stream.hpp"

namespace feedrate {
namespace {

class CudaGraph final : public Graph {
 public:
  CudaGraph() { check(cudaGraphCreate(&graph_, 0), "cudaGraphCreate"); }
  /// Takes ownership of `graph`.
  explicit CudaGraph(cudaGraph_t graph) : graph_(graph) {}
  ~CudaGraph() override {
    if (ready_ != nullptr) cudaGraphExecDestroy(ready_);
    cudaGraphDestroy(graph_);
  }
  CudaGraph(const CudaGraph&) = delete;
  CudaGraph& operator=(const CudaGraph&) = delete;

  Node add(const Copy& copy, Direction direction, std::span<const Node> after) override {
    const auto before = handles(after);
    const auto kind = direction == Direction::to_device ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost;
    Work work{.copy = copy, .kind = kind};
    check(cudaGraphAddMemcpyNode1D(&work.node, graph_, before.data(), before.size(), copy.to, copy.from, copy.bytes,
                                   kind),
          "cudaGraphAddMemcpyNode1D");
    return keep(work);
  }
  Node add(const Kernel& kernel, const BatchView& batch, unsigned block, std::span<const Node> after) override {
    Work work{.kernel = &kernel, .batch = batch, .block = block};
    kernel.with_cuda_launch(batch, block, [&](const CudaLaunch& launch) { work.node = kernel_node(launch, after); });
    return keep(work);
  }
  Node add(const Launchable& launchable, std::span<const Node> after) override {
    Work work{};
    launchable.with_cuda_launch([&](const CudaLaunch& launch) {
      if (launch.cluster.size() != 1)
        throw Failure("a kernel with clusters cannot be added to a graph; capture it instead");
      work.node = kernel_node(launch, after);
    });
    return keep(work);
  }
  void change(Node node, const Copy& copy) override {
    Work& work = nodes_.at(node);
    const Copy& old = work.copy;
    if (old.to == copy.to && old.from == copy.from && old.bytes == copy.bytes) return;
    check(cudaGraphExecMemcpyNodeSetParams1D(ready(), work.node, copy.to, copy.from, copy.bytes, work.kind),
          "cudaGraphExecMemcpyNodeSetParams1D");
    work.copy = copy;
  }
  void change(Node node, const BatchView& batch) override {
    Work& work = nodes_.at(node);
    if (std::memcmp(&work.batch, &batch, sizeof batch) == 0) return;  // padding may cause a redundant update
    if (work.kernel == nullptr) throw Failure("this graph node does not process messages");
    work.kernel->with_cuda_launch(batch, work.block, [&](const CudaLaunch& launch) {
      const cudaKernelNodeParams parameters = parameters_of(launch);
      check(cudaGraphExecKernelNodeSetParams(ready(), work.node, &parameters), "cudaGraphExecKernelNodeSetParams");
    });
    std::memcpy(&work.batch, &batch, sizeof batch);
  }
  void set_excluded(Node node, bool excluded) override {
    Work& work = nodes_.at(node);
    if (work.excluded == excluded) return;
    check(cudaGraphNodeSetEnabled(ready(), work.node, excluded ? 0 : 1), "cudaGraphNodeSetEnabled");
    work.excluded = excluded;
  }
  void launch(Stream& stream) override {
    check(cudaGraphLaunch(ready(), dynamic_cast<CudaStream&>(stream).get()), "cudaGraphLaunch");
  }

 private:
  struct Work {
    cudaGraphNode_t node = nullptr;
    Copy copy = {};
    cudaMemcpyKind kind = cudaMemcpyDefault;
    const Kernel* kernel = nullptr;
    BatchView batch = {};
    unsigned block = 0;
    bool excluded = false;
  };
  static cudaKernelNodeParams parameters_of(const CudaLaunch& launch) {
    cudaKernelNodeParams parameters{};
    parameters.func = const_cast<void*>(launch.kernel);
    parameters.gridDim = dim3_of(launch.grid);
    parameters.blockDim = dim3_of(launch.block);
    parameters.sharedMemBytes = launch.shared_bytes;
    parameters.kernelParams = launch.arguments;
    return parameters;
  }
  cudaGraphNode_t kernel_node(const CudaLaunch& launch, std::span<const Node> after) const {
    const auto before = handles(after);
    const cudaKernelNodeParams parameters = parameters_of(launch);
    cudaGraphNode_t node = nullptr;
    check(cudaGraphAddKernelNode(&node, graph_, before.data(), before.size(), &parameters), "cudaGraphAddKernelNode");
    return node;
  }
  std::vector<cudaGraphNode_t> handles(std::span<const Node> nodes) const {
    std::vector<cudaGraphNode_t> found;
    for (const Node node : nodes) found.push_back(nodes_.at(node).node);
    return found;
  }
  Node keep(const Work& work) {
    if (ready_ != nullptr) throw Failure("nodes cannot be added to a graph that has been launched");
    nodes_.push_back(work);
    return nodes_.size() - 1;
  }
  cudaGraphExec_t ready() {
    if (ready_ == nullptr) check(cudaGraphInstantiate(&ready_, graph_, 0), "cudaGraphInstantiate");
    return ready_;
  }

  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t ready_ = nullptr;
  std::vector<Work> nodes_;
};

}  // namespace

std::unique_ptr<Graph> make_cuda_graph() { return std::make_unique<CudaGraph>(); }

std::unique_ptr<Graph> capture_cuda_graph(const std::function<void(Stream&)>& body) {
  CudaStream stream;
  check(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  cudaGraph_t graph = nullptr;
  try {
    body(stream);
  } catch (...) {
    cudaStreamEndCapture(stream.get(), &graph);
    if (graph != nullptr) cudaGraphDestroy(graph);
    static_cast<void>(cudaGetLastError());  // otherwise the next check of a launch would report this error
    throw;
  }
  check(cudaStreamEndCapture(stream.get(), &graph), "cudaStreamEndCapture");
  return std::make_unique<CudaGraph>(graph);
}

}  // namespace feedrate
