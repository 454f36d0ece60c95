#include <cstdint>

#include "libraries/tensors/cuda_memory.hpp"

namespace feedrate::tensors {
namespace {

/// The driver's functions for virtual memory management; see the chapter of that name in CUDA's programming guide.
struct Driver {
  DriverFunction<decltype(cuMemCreate)> create{"cuMemCreate", 10020};
  DriverFunction<decltype(cuMemRelease)> release{"cuMemRelease", 10020};
  DriverFunction<decltype(cuMemExportToShareableHandle)> export_to{"cuMemExportToShareableHandle", 10020};
  DriverFunction<decltype(cuMemImportFromShareableHandle)> import_from{"cuMemImportFromShareableHandle", 10020};
  DriverFunction<decltype(cuMemAddressReserve)> reserve{"cuMemAddressReserve", 10020};
  DriverFunction<decltype(cuMemAddressFree)> unreserve{"cuMemAddressFree", 10020};
  DriverFunction<decltype(cuMemMap)> map{"cuMemMap", 10020};
  DriverFunction<decltype(cuMemUnmap)> unmap{"cuMemUnmap", 10020};
  DriverFunction<decltype(cuMemSetAccess)> set_access{"cuMemSetAccess", 10020};
  DriverFunction<decltype(cuMemGetAllocationGranularity)> granularity{"cuMemGetAllocationGranularity", 10020};
  DriverCheck check;
};

CUmemAllocationProp properties_of(int device) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  return properties;
}

/// A mapping into this process's address space. The memory itself exists as long as any process maps or holds it.
class VmmMapping final : public Mapping {
 public:
  VmmMapping(const Driver& driver, CUmemGenericAllocationHandle memory, std::size_t bytes, int device)
      : driver_(driver), bytes_(bytes), device_(device) {
    driver_.check(driver_.reserve(&address_, bytes_, std::size_t{0}, CUdeviceptr{0}, 0ull), "cuMemAddressReserve");
    try {
      driver_.check(driver_.map(address_, bytes_, std::size_t{0}, memory, 0ull), "cuMemMap");
      mapped_ = true;
      CUmemAccessDesc access{};
      access.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
      access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
      driver_.check(driver_.set_access(address_, bytes_, &access, std::size_t{1}), "cuMemSetAccess");
    } catch (...) {
      end();
      throw;
    }
  }
  ~VmmMapping() override { end(); }
  void* data() const override { return reinterpret_cast<void*>(address_); }

 private:
  void end() {
    const OnDevice on(device_, std::nothrow);
    if (mapped_) driver_.unmap(address_, bytes_);
    driver_.unreserve(address_, bytes_);
  }
  const Driver& driver_;
  CUdeviceptr address_ = 0;
  std::size_t bytes_;
  int device_;
  bool mapped_ = false;
};

class VmmChunk final : public CudaChunk {
 public:
  VmmChunk(const Driver& driver, std::size_t bytes, int device) : CudaChunk(bytes, device), driver_(driver) {
    const CUmemAllocationProp properties = properties_of(device);
    driver_.check(driver_.create(&memory_, bytes, &properties, 0ull), "cuMemCreate");
    try {
      int descriptor = -1;
      driver_.check(driver_.export_to(&descriptor, memory_, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0ull),
                    "cuMemExportToShareableHandle");
      descriptor_ = Descriptor(descriptor);
      mapping_ = std::make_unique<VmmMapping>(driver_, memory_, bytes, device);
      zero(0, bytes);  // remove data that another process left there
    } catch (...) {
      driver_.release(memory_);
      throw;
    }
  }
  ~VmmChunk() override {
    mapping_.reset();
    driver_.release(memory_);
  }
  Handle handle() const override { return {descriptor_.get(), {}}; }
  std::byte* data() override { return static_cast<std::byte*>(mapping_->data()); }

 private:
  const Driver& driver_;
  CUmemGenericAllocationHandle memory_ = 0;
  Descriptor descriptor_;
  std::unique_ptr<VmmMapping> mapping_;
};

class VmmMemory final : public CudaMemory {
 public:
  explicit VmmMemory(const Gpus& gpus) : CudaMemory("vmm", gpus) {
    const CUmemAllocationProp properties = properties_of(gpus.owner);
    driver_.check(driver_.granularity(&granularity_, &properties, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED),
                  "cuMemGetAllocationGranularity");
  }
  std::size_t granularity() const override { return granularity_; }
  std::unique_ptr<Chunk> make(std::size_t bytes) override {
    const OnDevice on(gpus_.owner);
    return std::make_unique<VmmChunk>(driver_, bytes, gpus_.owner);
  }
  std::unique_ptr<Mapping> map(Descriptor descriptor, std::string_view /*handle*/, std::size_t bytes) override {
    const OnDevice on(gpus_.user);
    CUmemGenericAllocationHandle memory = 0;
    driver_.check(driver_.import_from(&memory, reinterpret_cast<void*>(static_cast<std::intptr_t>(descriptor.get())),
                                      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
                  "cuMemImportFromShareableHandle");
    try {
      auto mapping = std::make_unique<VmmMapping>(driver_, memory, bytes, gpus_.user);
      driver_.release(memory);  // the mapping keeps the memory alive
      return mapping;
    } catch (...) {
      driver_.release(memory);
      throw;
    }
  }

 private:
  Driver driver_;
  std::size_t granularity_ = 0;
};

}  // namespace

std::unique_ptr<ChunkMemory> vmm_memory(const Gpus& gpus) { return std::make_unique<VmmMemory>(gpus); }

}  // namespace feedrate::tensors
