#include "libraries/tensors/cuda_memory.hpp"

#include <cstdint>
#include <map>
#include <mutex>

namespace feedrate::tensors {
namespace {

struct Way {
  const char* name;
  std::unique_ptr<ChunkMemory> (*make)(const Gpus&);
};
constexpr Way kWays[] = {{"vmm", vmm_memory}, {"pool", pool_memory}, {"legacy", legacy_memory}};

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

/// Throws BadInput naming `--device`.
int index_of(const std::string& device) {
  if (const std::string reason = why_no_gpu(); !reason.empty()) {
    throw BadInput("--device", device, "cpu (" + reason + ")");
  }
  int count = 0;
  check(cudaGetDeviceCount(&count), "cudaGetDeviceCount");
  for (int index = 0; index < count; ++index) {
    if (device == uuid_of(index) || device == "cuda:" + std::to_string(index) || (device == "cuda" && index == 0)) {
      return index;
    }
  }
  throw BadInput("--device", device, "cpu, cuda:0 to cuda:" + std::to_string(count - 1) + ", a GPU's UUID");
}

}  // namespace

void CudaChunk::zero(std::size_t offset, std::size_t bytes) {
  const OnDevice on(device_);
  check(cudaMemsetAsync(data() + offset, 0, bytes, cudaStreamPerThread), "cudaMemsetAsync");
  check(cudaStreamSynchronize(cudaStreamPerThread), "zeroing a chunk");
}

void CudaMemory::copy(void* to, const void* from, std::size_t bytes) {
  const OnDevice on(gpus_.user);
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, cudaStreamPerThread), "cudaMemcpyAsync");
  check(cudaStreamSynchronize(cudaStreamPerThread), "copying a tensor");
}

bool CudaMemory::settle() noexcept {
  const OnDevice on(gpus_.user, std::nothrow);
  if (on && cudaDeviceSynchronize() == cudaSuccess) return true;
  // Clear the error, or the user's next launch would report it. An error that breaks a context recurs anyway.
  cudaGetLastError();
  return false;
}

/// Parts of the board that the GPU can access. They are registered when a stream first needs them and unregistered by
/// the destructor.
struct CudaMemory::Words {
  ~Words() {
    for (const auto& [part, address] : parts) cudaHostUnregister(part);
  }
  DriverFunction<decltype(cuStreamWriteValue64)> write{"cuStreamWriteValue64", 12000};
  DriverFunction<decltype(cuStreamWaitValue64)> await{"cuStreamWaitValue64", 12000};
  DriverCheck check;
  std::mutex mutex;
  std::map<std::byte*, CUdeviceptr> parts;
};

CUdeviceptr CudaMemory::address_of(const WordPlace& place) {
  const std::lock_guard lock(words_->mutex);
  auto found = words_->parts.find(place.part);
  if (found == words_->parts.end()) {
    check(cudaHostRegister(place.part, place.part_bytes, cudaHostRegisterMapped | cudaHostRegisterPortable),
          "cudaHostRegister");
    void* address = nullptr;
    if (const cudaError_t error = cudaHostGetDevicePointer(&address, place.part, 0); error != cudaSuccess) {
      cudaHostUnregister(place.part);
      check(error, "cudaHostGetDevicePointer");
    }
    found = words_->parts.emplace(place.part, reinterpret_cast<CUdeviceptr>(address)).first;
  }
  return found->second + place.offset;
}

void CudaMemory::write_word(void* stream, const WordPlace& place, std::uint64_t value) {
  const OnDevice on(gpus_.user);
  // The default flag makes all earlier writes of the stream visible before this one.
  words_->check(words_->write(static_cast<CUstream>(stream), address_of(place), value,
                              static_cast<unsigned>(CU_STREAM_WRITE_VALUE_DEFAULT)),
                "cuStreamWriteValue64");
}

void CudaMemory::await_word(void* stream, const WordPlace& place, std::uint64_t least) {
  const OnDevice on(gpus_.user);
  words_->check(words_->await(static_cast<CUstream>(stream), address_of(place), least,
                              static_cast<unsigned>(CU_STREAM_WAIT_VALUE_GEQ)),
                "cuStreamWaitValue64");
}

CudaMemory::CudaMemory(std::string way, Gpus gpus) : gpus_(std::move(gpus)), way_(std::move(way)) {
  const OnDevice on(gpus_.user);
  check(cudaFree(nullptr), "creating the GPU's context");
  words_ = std::make_shared<Words>();
}

std::vector<std::string> gpu_ways() {
  std::vector<std::string> all;
  for (const Way& way : kWays) all.emplace_back(way.name);
  return all;
}

std::unique_ptr<ChunkMemory> gpu_memory(const std::string& way, const std::string& device, const std::string& user) {
  const int owner = index_of(device);
  const Gpus gpus{owner, user.empty() ? owner : index_of(user), uuid_of(owner)};
  std::string names;
  for (const Way& known : kWays) {
    if (way == known.name) return known.make(gpus);
    names += (names.empty() ? "" : ", ") + std::string(known.name);
  }
  throw BadInput("--share", way, names);
}

}  // namespace feedrate::tensors
