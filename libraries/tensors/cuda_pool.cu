#include <cstdint>
#include <memory>

#include "libraries/tensors/cuda_memory.hpp"

/// Memory from a stream-ordered pool. Other processes open the pool once, by a descriptor, and its pieces by handles.
namespace feedrate::tensors {
namespace {

/// Destroys the pool with its last owner.
using Pool = std::shared_ptr<std::remove_pointer_t<cudaMemPool_t>>;
Pool owner_of(cudaMemPool_t pool) { return {pool, cudaMemPoolDestroy}; }

Pool make_pool(int device) {
  cudaMemPoolProps properties{};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.handleTypes = cudaMemHandleTypePosixFileDescriptor;
  properties.location = {cudaMemLocationTypeDevice, device};
  cudaMemPool_t pool = nullptr;
  check(cudaMemPoolCreate(&pool, &properties), "cudaMemPoolCreate");
  return owner_of(pool);
}

class PoolChunk final : public CudaChunk {
 public:
  PoolChunk(Pool pool, int descriptor, std::size_t bytes, int device)
      : CudaChunk(bytes, device), pool_(std::move(pool)), descriptor_(descriptor) {
    check_memory(cudaMallocFromPoolAsync(reinterpret_cast<void**>(&data_), bytes, pool_.get(), cudaStreamPerThread),
                 "cudaMallocFromPoolAsync");
    try {
      zero(0, bytes);
      check(cudaMemPoolExportPointer(&handle_, data_), "cudaMemPoolExportPointer");
    } catch (...) {
      free();
      throw;
    }
  }
  ~PoolChunk() override { free(); }
  Handle handle() const override { return {descriptor_, bytes_of_handle(handle_)}; }
  std::byte* data() override { return data_; }

 private:
  void free() {
    const OnDevice on(device_, std::nothrow);
    cudaFreeAsync(data_, cudaStreamPerThread);
    cudaStreamSynchronize(cudaStreamPerThread);  // after this, the pool may reuse the memory
  }
  Pool pool_;
  int descriptor_;
  std::byte* data_ = nullptr;
  cudaMemPoolPtrExportData handle_{};
};

class PoolMapping final : public Mapping {
 public:
  PoolMapping(Pool pool, cudaMemPoolPtrExportData handle, int device) : pool_(std::move(pool)), device_(device) {
    check(cudaMemPoolImportPointer(&data_, pool_.get(), &handle), "cudaMemPoolImportPointer");
  }
  ~PoolMapping() override {
    const OnDevice on(device_, std::nothrow);
    cudaFreeAsync(data_, cudaStreamPerThread);
    cudaStreamSynchronize(cudaStreamPerThread);  // before the daemon is notified and frees the memory itself
  }
  void* data() const override { return data_; }

 private:
  Pool pool_;
  int device_;
  void* data_ = nullptr;
};

class PoolMemory final : public CudaMemory {
 public:
  explicit PoolMemory(const Gpus& gpus) : CudaMemory("pool", gpus) {}
  std::unique_ptr<Chunk> make(std::size_t bytes) override {
    const OnDevice on(gpus_.owner);
    if (!own_) {
      own_ = make_pool(gpus_.owner);
      int descriptor = -1;
      check(cudaMemPoolExportToShareableHandle(&descriptor, own_.get(), cudaMemHandleTypePosixFileDescriptor, 0),
            "cudaMemPoolExportToShareableHandle");
      descriptor_ = Descriptor(descriptor);
    }
    return std::make_unique<PoolChunk>(own_, descriptor_.get(), bytes, gpus_.owner);
  }
  std::unique_ptr<Mapping> map(Descriptor descriptor, std::string_view handle, std::size_t /*bytes*/) override {
    const OnDevice on(gpus_.user);
    const auto known = handle_from<cudaMemPoolPtrExportData>(handle);
    if (!other_) other_ = import(descriptor);  // the daemon sends it with every chunk
    return std::make_unique<PoolMapping>(other_, known, gpus_.user);
  }

 private:
  Pool import(const Descriptor& descriptor) const {
    cudaMemPool_t pool = nullptr;
    check(cudaMemPoolImportFromShareableHandle(&pool,
                                               reinterpret_cast<void*>(static_cast<std::intptr_t>(descriptor.get())),
                                               cudaMemHandleTypePosixFileDescriptor, 0),
          "cudaMemPoolImportFromShareableHandle");
    Pool made = owner_of(pool);
    // By default only the GPU that owns the memory may access it.
    const cudaMemAccessDesc access{{cudaMemLocationTypeDevice, gpus_.user}, cudaMemAccessFlagsProtReadWrite};
    if (gpus_.user != gpus_.owner) check(cudaMemPoolSetAccess(pool, &access, 1), "cudaMemPoolSetAccess");
    return made;
  }

  Pool own_, other_;
  Descriptor descriptor_;
};

}  // namespace

std::unique_ptr<ChunkMemory> pool_memory(const Gpus& gpus) { return std::make_unique<PoolMemory>(gpus); }

}  // namespace feedrate::tensors
