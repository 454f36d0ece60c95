#pragma once
#include <cuda.h>
#include <cuda_runtime.h>

#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <string>

#include "common/device/cuda_check.hpp"
#include "libraries/tensors/errors.hpp"
#include "libraries/tensors/memory.hpp"

/// The common part of all ways to share a GPU's memory.
namespace feedrate::tensors {

/// A driver function that the runtime does not offer. It is looked up at run time, because the executable must also
/// start without a driver.
template <class Function>
class DriverFunction {
 public:
  /// `version`: the CUDA version that introduced the current form of the function.
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

/// Checks a result; throws OutOfMemory, or Failure with the driver's name for the error.
class DriverCheck {
 public:
  void operator()(CUresult result, const char* what) const {
    if (result == CUDA_SUCCESS) return;
    const char* name = nullptr;
    error_name_(result, &name);
    const std::string text = std::string(what) + ": " + (name != nullptr ? name : "an unknown error");
    if (result == CUDA_ERROR_OUT_OF_MEMORY) throw OutOfMemory(text);
    throw Failure(text);
  }

 private:
  DriverFunction<decltype(cuGetErrorName)> error_name_{"cuGetErrorName", 6000};
};

/// The same for the runtime's allocation calls.
inline void check_memory(cudaError_t error, const char* what) {
  if (error == cudaErrorMemoryAllocation) {
    cudaGetLastError();  // clear the error, or the next launch would report it again
    throw OutOfMemory(std::string(what) + ": " + cudaGetErrorName(error));
  }
  check(error, what);
}

/// Makes a device current in this thread during its lifetime, because the user's thread may be using another device. It
/// uses only driver calls: cudaSetDevice would create a context on the device, and restoring the previous device would
/// create one there too, even on an unused GPU; and a thread without a context would keep a device that it never chose.
class OnDevice {
 public:
  /// Throws Failure if the device has no context and none can be created.
  explicit OnDevice(int device) {
    calls().check(calls().push(calls().context_of(device)), "cuCtxPushCurrent");
    pushed_ = true;
  }
  /// Used by code that frees memory. At process exit the driver may already be gone, and then there is nothing to do.
  OnDevice(int device, std::nothrow_t) noexcept {
    try {
      pushed_ = calls().push(calls().context_of(device)) == CUDA_SUCCESS;
    } catch (const std::exception&) {  // the device no longer has a context
    }
  }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;
  ~OnDevice() {
    CUcontext own = nullptr;
    if (pushed_) calls().pop(&own);
  }
  explicit operator bool() const { return pushed_; }

 private:
  struct Calls {
    /// The device's primary context, which the runtime uses as well; kept until the process exits.
    CUcontext context_of(int device) const {
      const std::lock_guard lock(mutex);
      CUcontext& found = contexts[device];
      if (found != nullptr) return found;
      CUdevice own = 0;
      check(device_of(&own, device), "cuDeviceGet");
      check(retain(&found, own), "cuDevicePrimaryCtxRetain");
      return found;
    }
    DriverCheck check;
    DriverFunction<decltype(cuDeviceGet)> device_of{"cuDeviceGet", 2000};
    DriverFunction<decltype(cuDevicePrimaryCtxRetain)> retain{"cuDevicePrimaryCtxRetain", 7000};
    DriverFunction<decltype(cuCtxPushCurrent)> push{"cuCtxPushCurrent", 4000};
    DriverFunction<decltype(cuCtxPopCurrent)> pop{"cuCtxPopCurrent", 4000};
    mutable std::mutex mutex;
    mutable std::map<int, CUcontext> contexts;
  };
  static const Calls& calls() {
    static const Calls found;
    return found;
  }
  bool pushed_ = false;
};

/// Reads a handle that another process sent as bytes. Throws Failure if its size is wrong.
template <class T>
T handle_from(std::string_view bytes) {
  T known{};
  if (bytes.size() != sizeof known) throw Failure("the daemon sent an invalid handle for a chunk");
  std::memcpy(&known, bytes.data(), sizeof known);
  return known;
}
template <class T>
std::string bytes_of_handle(const T& handle) {
  return {reinterpret_cast<const char*>(&handle), sizeof handle};
}

/// The GPU that owns the memory and the GPU of this process that uses it; usually the same.
struct Gpus {
  int owner = 0, user = 0;
  std::string uuid;  ///< the owner's UUID, as NVML and nvidia-smi print it
};

/// A chunk that this process can access at `data()`. The base class zeroes it with the owner as the current device.
class CudaChunk : public Chunk {
 public:
  CudaChunk(std::size_t bytes, int device) : bytes_(bytes), device_(device) {}
  std::size_t bytes() const override { return bytes_; }
  void zero(std::size_t offset, std::size_t bytes) override;

 protected:
  const std::size_t bytes_;
  const int device_;
};

class CudaMemory : public ChunkMemory {
 public:
  CudaMemory(std::string way, Gpus gpus);
  std::string kind() const override { return way_ + ":" + gpus_.uuid; }
  int cuda_index() const override { return gpus_.owner; }
  std::size_t granularity() const override { return std::size_t{2} << 20; }
  void copy(void* to, const void* from, std::size_t bytes) override;
  bool settle() noexcept override;
  void write_word(void* stream, const WordPlace&, std::uint64_t value) override;
  void await_word(void* stream, const WordPlace&, std::uint64_t least) override;

 protected:
  const Gpus gpus_;

 private:
  struct Words;
  CUdeviceptr address_of(const WordPlace&);
  const std::string way_;
  std::shared_ptr<Words> words_;
};

std::unique_ptr<ChunkMemory> vmm_memory(const Gpus&);
std::unique_ptr<ChunkMemory> pool_memory(const Gpus&);
std::unique_ptr<ChunkMemory> legacy_memory(const Gpus&);

}  // namespace feedrate::tensors
