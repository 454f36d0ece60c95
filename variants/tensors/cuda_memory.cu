#include <cuda.h>
#include <cuda_runtime.h>
#include <unistd.h>

#include <cstdint>
#include <string>

#include "common/device/cuda_check.hpp"
#include "variants/tensors/errors.hpp"
#include "variants/tensors/memory.hpp"

namespace feedrate::tensors {
namespace {

/// A function of the driver that the runtime does not have. The executable must also start where there is no driver, so
/// it is looked up.
template <class Function>
class DriverFunction {
 public:
  /// `version`: the CUDA that gave it its present form.
  DriverFunction(const char* name, unsigned version) {
    void* entry = nullptr;
    cudaDriverEntryPointQueryResult found{};
    check(cudaGetDriverEntryPointByVersion(name, &entry, version, cudaEnableDefault, &found), name);
    if (found != cudaDriverEntryPointSuccess) throw Failure(std::string("this driver has no ") + name);
    call_ = reinterpret_cast<Function*>(entry);
  }
  template <class... Arguments>
  CUresult operator()(Arguments... arguments) const {
    return call_(arguments...);
  }

 private:
  Function* call_ = nullptr;
};

/// Virtual memory management: CUDA's programming guide, the chapter of that name.
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
  DriverFunction<decltype(cuGetErrorName)> error_name{"cuGetErrorName", 6000};

  void check(CUresult result, const char* what) const {
    if (result == CUDA_SUCCESS) return;
    const char* name = nullptr;
    error_name(result, &name);
    const std::string text = std::string(what) + ": " + (name != nullptr ? name : "an unknown error");
    if (result == CUDA_ERROR_OUT_OF_MEMORY) throw OutOfMemory(text);
    throw Failure(text);
  }
};

/// A device is the thread's current one while this lives: the thread is the user's, who may be with another.
class OnDevice {
 public:
  explicit OnDevice(int device) {
    cudaGetDevice(&before_);
    cudaSetDevice(device);  // where that fails, the calls that follow do
  }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;
  ~OnDevice() { cudaSetDevice(before_); }

 private:
  int before_ = 0;
};

CUmemAllocationProp properties_of(int device) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  return properties;
}

/// Memory in this process's addresses. The memory itself lives as long as anybody maps or holds it.
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
  VmmMapping(const VmmMapping&) = delete;
  VmmMapping& operator=(const VmmMapping&) = delete;
  ~VmmMapping() override { end(); }
  void* data() const override { return reinterpret_cast<void*>(address_); }

 private:
  void end() {
    const OnDevice on(device_);
    if (mapped_) driver_.unmap(address_, bytes_);
    driver_.unreserve(address_, bytes_);
  }
  const Driver& driver_;
  CUdeviceptr address_ = 0;
  std::size_t bytes_;
  int device_;
  bool mapped_ = false;
};

class VmmChunk final : public Chunk {
 public:
  VmmChunk(const Driver& driver, std::size_t bytes, int device) : driver_(driver), bytes_(bytes), device_(device) {
    const CUmemAllocationProp properties = properties_of(device);
    driver_.check(driver_.create(&memory_, bytes, &properties, 0ull), "cuMemCreate");
    try {
      int descriptor = -1;
      driver_.check(driver_.export_to(&descriptor, memory_, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0ull),
                    "cuMemExportToShareableHandle");
      descriptor_ = Descriptor(descriptor);
      mapping_ = std::make_unique<VmmMapping>(driver_, memory_, bytes, device);
      zero(0, bytes);  // what another process left there
    } catch (...) {
      driver_.release(memory_);
      throw;
    }
  }
  VmmChunk(const VmmChunk&) = delete;
  VmmChunk& operator=(const VmmChunk&) = delete;
  ~VmmChunk() override {
    mapping_.reset();
    driver_.release(memory_);
  }
  std::size_t bytes() const override { return bytes_; }
  int descriptor() const override { return descriptor_.get(); }
  void zero(std::size_t offset, std::size_t bytes) override {
    const OnDevice on(device_);
    check(cudaMemsetAsync(static_cast<std::byte*>(mapping_->data()) + offset, 0, bytes, cudaStreamPerThread),
          "cudaMemsetAsync");
    check(cudaStreamSynchronize(cudaStreamPerThread), "zeroing a chunk");
  }

 private:
  const Driver& driver_;
  CUmemGenericAllocationHandle memory_ = 0;
  std::size_t bytes_;
  int device_;
  Descriptor descriptor_;
  std::unique_ptr<VmmMapping> mapping_;
};

/// As NVML and nvidia-smi write it.
std::string uuid_of(int device) {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text = "GPU";
  for (int i = 0; i < 16; ++i) {
    if (i == 0 || i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    const auto byte = static_cast<unsigned char>(properties.uuid.bytes[i]);
    text += kDigits[byte / 16];
    text += kDigits[byte % 16];
  }
  return text;
}

class VmmMemory final : public ChunkMemory {
 public:
  explicit VmmMemory(int device) : device_(device), uuid_(uuid_of(device)) {
    const OnDevice on(device_);
    check(cudaFree(nullptr), "the GPU's context");
    const CUmemAllocationProp properties = properties_of(device_);
    driver_.check(driver_.granularity(&granularity_, &properties, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED),
                  "cuMemGetAllocationGranularity");
  }
  std::string kind() const override { return std::string(kVmmKind) + uuid_; }
  int cuda_index() const override { return device_; }
  std::size_t granularity() const override { return granularity_; }
  std::unique_ptr<Chunk> make(std::size_t bytes) override {
    const OnDevice on(device_);
    return std::make_unique<VmmChunk>(driver_, bytes, device_);
  }
  std::unique_ptr<Mapping> map(Descriptor descriptor, std::size_t bytes) override {
    const OnDevice on(device_);
    CUmemGenericAllocationHandle memory = 0;
    driver_.check(driver_.import_from(&memory, reinterpret_cast<void*>(static_cast<std::intptr_t>(descriptor.get())),
                                      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
                  "cuMemImportFromShareableHandle");
    try {
      auto mapping = std::make_unique<VmmMapping>(driver_, memory, bytes, device_);
      driver_.release(memory);  // the mapping keeps it
      return mapping;
    } catch (...) {
      driver_.release(memory);
      throw;
    }
  }
  void copy(void* to, const void* from, std::size_t bytes) override {
    const OnDevice on(device_);
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, cudaStreamPerThread), "cudaMemcpyAsync");
    check(cudaStreamSynchronize(cudaStreamPerThread), "copying a tensor");
  }
  void settle() noexcept override {
    const OnDevice on(device_);
    cudaDeviceSynchronize();  // a context that is broken has no work left; its next call says so
  }

 private:
  Driver driver_;
  int device_;
  std::string uuid_;
  std::size_t granularity_ = 0;
};

}  // namespace

std::unique_ptr<ChunkMemory> vmm_memory(const std::string& device) {
  int count = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&count); error != cudaSuccess || count == 0) {
    throw BadInput("--device", device, std::string("cpu (no GPU: ") + cudaGetErrorString(error) + ")");
  }
  for (int index = 0; index < count; ++index) {
    if (device == uuid_of(index) || device == "cuda:" + std::to_string(index) || (device == "cuda" && index == 0)) {
      return std::make_unique<VmmMemory>(index);
    }
  }
  throw BadInput("--device", device, "cpu, cuda:0 to cuda:" + std::to_string(count - 1) + ", a GPU's UUID");
}

}  // namespace feedrate::tensors
