#pragma once
#include <cuda.h>
#include <cuda_runtime.h>

#include <map>
#include <mutex>
#include <new>
#include <string>

#include "common/device/cuda_check.hpp"
#include "libraries/tensors/errors.hpp"
#include "libraries/tensors/memory.hpp"

/// What all ways to share a GPU's memory have in common.
namespace feedrate::tensors {

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

/// Throws OutOfMemory, or Failure with the driver's name for the error.
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

/// The same for the runtime's calls that take memory.
inline void check_memory(cudaError_t error, const char* what) {
  if (error == cudaErrorMemoryAllocation) {
    cudaGetLastError();  // it would be told again by the next launch
    throw OutOfMemory(std::string(what) + ": " + cudaGetErrorName(error));
  }
  check(error, what);
}

/// A device is the thread's current one while this lives: the thread is the user's, who may be with another. By the
/// driver's calls alone: to set a device would make a context on it, and on the one that is set back, also on a GPU
/// that nobody uses; and a thread without a context would stay with the device that it never chose.
class OnDevice {
 public:
  /// Throws Failure where the device has no context and can't get one.
  explicit OnDevice(int device) {
    calls().check(calls().push(calls().context_of(device)), "cuCtxPushCurrent");
    pushed_ = true;
  }
  /// For what ends memory: at a process's end the driver may be gone already, and then there is nothing to do.
  OnDevice(int device, std::nothrow_t) noexcept {
    try {
      pushed_ = calls().push(calls().context_of(device)) == CUDA_SUCCESS;
    } catch (const std::exception&) {  // it has no context any more
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
    /// The one that the runtime uses as well; kept until the process ends.
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

/// Whose memory it is, and which GPU of this process uses it: mostly the same.
struct Gpus {
  int owner = 0, user = 0;
  std::string uuid;  ///< the owner's, as NVML and nvidia-smi write it
};

/// A chunk that this process may use at `data()`. The base zeroes, with the owner as the current device.
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
