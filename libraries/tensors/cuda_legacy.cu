#include "libraries/tensors/cuda_memory.hpp"

/// CUDA's first way to share memory: a handle to a cudaMalloc block. A process cannot map its own handle.
namespace feedrate::tensors {
namespace {

/// A handle refers to the entire block that the driver allocated, which may start before the requested memory.
struct LegacyHandle {
  cudaIpcMemHandle_t block;
  std::size_t offset;
};

class LegacyChunk final : public CudaChunk {
 public:
  LegacyChunk(std::size_t bytes, int device) : CudaChunk(bytes, device) {
    check_memory(cudaMalloc(reinterpret_cast<void**>(&data_), bytes), "cudaMalloc");
    try {
      const DriverCheck generator_check;
      const DriverFunction<decltype(cuMemGetAddressRange)> range("cuMemGetAddressRange", 3020);
      CUdeviceptr base = 0;
      std::size_t size = 0;
      generator_check(range(&base, &size, reinterpret_cast<CUdeviceptr>(data_)), "cuMemGetAddressRange");
      LegacyHandle handle{{}, reinterpret_cast<CUdeviceptr>(data_) - base};
      check(cudaIpcGetMemHandle(&handle.block, data_), "cudaIpcGetMemHandle");
      handle_ = bytes_of_handle(handle);
      zero(0, bytes);
    } catch (...) {
      cudaFree(data_);
      throw;
    }
  }
  ~LegacyChunk() override {
    const OnDevice on(device_, std::nothrow);
    cudaFree(data_);
  }
  Handle handle() const override { return {-1, handle_}; }
  std::byte* data() override { return data_; }

 private:
  std::byte* data_ = nullptr;
  std::string handle_;
};

class LegacyMapping final : public Mapping {
 public:
  LegacyMapping(const LegacyHandle& handle, int device) : device_(device) {
    check(cudaIpcOpenMemHandle(&block_, handle.block, cudaIpcMemLazyEnablePeerAccess), "cudaIpcOpenMemHandle");
    data_ = static_cast<std::byte*>(block_) + handle.offset;
  }
  ~LegacyMapping() override {
    const OnDevice on(device_, std::nothrow);
    cudaIpcCloseMemHandle(block_);
  }
  void* data() const override { return data_; }

 private:
  int device_;
  void* block_ = nullptr;
  std::byte* data_ = nullptr;
};

class LegacyMemory final : public CudaMemory {
 public:
  explicit LegacyMemory(const Gpus& gpus) : CudaMemory("legacy", gpus) {}
  std::unique_ptr<Chunk> make(std::size_t bytes) override {
    const OnDevice on(gpus_.owner);
    return std::make_unique<LegacyChunk>(bytes, gpus_.owner);
  }
  std::unique_ptr<Mapping> map(Descriptor, std::string_view handle, std::size_t /*bytes*/) override {
    const auto known = handle_from<LegacyHandle>(handle);
    const OnDevice on(gpus_.user);
    return std::make_unique<LegacyMapping>(known, gpus_.user);
  }
};

}  // namespace

std::unique_ptr<ChunkMemory> legacy_memory(const Gpus& gpus) { return std::make_unique<LegacyMemory>(gpus); }

}  // namespace feedrate::tensors
