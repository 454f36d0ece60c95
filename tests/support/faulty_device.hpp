#pragma once
#include <atomic>
#include <memory>
#include <string>

#include "common/error.hpp"
#include "tests/support/device_around.hpp"

namespace feedrate::test {

/// The calls that a FaultyDevice fails: the n-th call of a kind, counted from 1 starting now; 0: none.
struct Faults {
  std::atomic<int> allocation{0}, copy{0};

  static void pass(std::atomic<int>& left, const char* what) {
    if (left.load() != 0 && left.fetch_sub(1) == 1) throw Failure(std::string(what) + ": planted");
  }
};

/// A device on which some calls fail, as they can on a GPU.
class FaultyDevice final : public DeviceAround {
 public:
  explicit FaultyDevice(std::shared_ptr<Faults> faults) : faults_(std::move(faults)) {}

  Buffer allocate_host(std::size_t bytes, HostMemory memory) override {
    Faults::pass(faults_->allocation, "cudaHostAlloc");
    return DeviceAround::allocate_host(bytes, memory);
  }
  Buffer allocate_device(std::size_t bytes, Fresh fresh) override {
    Faults::pass(faults_->allocation, "cudaMalloc");
    return DeviceAround::allocate_device(bytes, fresh);
  }
  std::unique_ptr<Stream> stream() override { return std::make_unique<FaultyStream>(*faults_, device_->stream()); }
  std::unique_ptr<Graph> graph() override { return std::make_unique<FaultyGraph>(*faults_, device_->graph()); }

 private:
  struct FaultyStream final : StreamAround {
    FaultyStream(Faults& faults, std::unique_ptr<Stream> stream) : StreamAround(std::move(stream)), faults(faults) {}
    void copy_to_device(std::byte* device, const std::byte* host, std::size_t bytes) override {
      Faults::pass(faults.copy, "cudaMemcpyAsync");
      StreamAround::copy_to_device(device, host, bytes);
    }
    void copy_to_host(std::byte* host, const std::byte* device, std::size_t bytes) override {
      Faults::pass(faults.copy, "cudaMemcpyAsync");
      StreamAround::copy_to_host(host, device, bytes);
    }
    void copy_batch(std::span<const Copy> copies, Direction direction) override {
      Faults::pass(faults.copy, "cudaMemcpyBatchAsync");
      StreamAround::copy_batch(copies, direction);
    }
    std::byte* allocate(std::size_t bytes) override {
      Faults::pass(faults.allocation, "cudaMallocAsync");
      return StreamAround::allocate(bytes);
    }
    Faults& faults;
  };
  struct FaultyGraph final : GraphAround {
    FaultyGraph(Faults& faults, std::unique_ptr<Graph> graph) : GraphAround(std::move(graph)), faults(faults) {}
    void launch(Stream& stream) override {
      Faults::pass(faults.copy, "cudaGraphLaunch");  // represents the copies in the graph
      GraphAround::launch(stream);
    }
    Faults& faults;
  };

  std::shared_ptr<Faults> faults_;
};

}  // namespace feedrate::test
