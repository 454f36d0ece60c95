#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <vector>

#include "common/device/cuda_check.hpp"
#include "libraries/storage/gate.hpp"

namespace feedrate::storage {
namespace {

using WaitValue = decltype(&cuStreamWaitValue64);

WaitValue stream_wait_value() {
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult found{};
  check(cudaGetDriverEntryPointByVersion("cuStreamWaitValue64", &entry, 12000, cudaEnableDefault, &found),
        "looking up cuStreamWaitValue64");
  if (found != cudaDriverEntryPointSuccess) throw Failure("this driver has no cuStreamWaitValue64");
  return reinterpret_cast<WaitValue>(entry);
}

/// Makes a GPU current in this thread during its lifetime.
class OnGpu {
 public:
  explicit OnGpu(unsigned gpu) {
    check(cudaGetDevice(&before_), "cudaGetDevice");
    check(cudaSetDevice(static_cast<int>(gpu)), "cudaSetDevice");
  }
  ~OnGpu() { cudaSetDevice(before_); }
  OnGpu(const OnGpu&) = delete;
  OnGpu& operator=(const OnGpu&) = delete;

 private:
  int before_ = 0;
};

/// A word of pinned memory for which streams wait, one after another. It only ever grows, so a stream that comes late
/// finds its value as well.
struct Word {
  std::uint64_t* value = nullptr;
  std::uint64_t last = 0;                           // the value for which the last gate waits
  cudaEvent_t reached = nullptr, passed = nullptr;  // before and after the wait of the last gate
};

/// The words of all gates. A word is used again once its gate has been opened.
class Words {
 public:
  explicit Words(Device& device) : device_(device) {}
  ~Words() {
    for (const Word& word : words_) {
      if (word.passed != nullptr) cudaEventSynchronize(word.passed);  // the stream still reads the word until then
      for (cudaEvent_t event : {word.reached, word.passed}) {
        if (event != nullptr) cudaEventDestroy(event);
      }
    }
  }
  Words(const Words&) = delete;
  Words& operator=(const Words&) = delete;

  Word& take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) add_page();
    Word* const word = free_.back();
    free_.pop_back();
    return *word;
  }
  void give_back(Word& word) {
    const std::lock_guard lock(mutex_);
    free_.push_back(&word);
  }

 private:
  void add_page() {
    constexpr std::size_t kPage = 4096;
    pages_.push_back(device_.allocate_host(kPage, HostMemory::pinned));
    auto* const values = reinterpret_cast<std::uint64_t*>(pages_.back().data());
    for (std::size_t i = 0; i < kPage / sizeof *values; ++i) free_.push_back(&words_.emplace_back(Word{values + i}));
  }

  Device& device_;
  std::mutex mutex_;
  std::vector<Buffer> pages_;
  std::deque<Word> words_;
  std::vector<Word*> free_;
};

class CudaGate final : public Gate {
 public:
  /// `wait`: null if the gate does not hold.
  CudaGate(Words& words, WaitValue wait, cudaStream_t stream) : words_(words), word_(words.take()) {
    try {
      for (cudaEvent_t* event : {&word_.reached, &word_.passed}) {
        if (*event == nullptr) check(cudaEventCreateWithFlags(event, cudaEventDisableTiming), "cudaEventCreate");
      }
      check(cudaEventRecord(word_.reached, stream), "cudaEventRecord");
      if (wait == nullptr) return;
      const CUresult queued =
          wait(stream, reinterpret_cast<CUdeviceptr>(word_.value), ++word_.last, CU_STREAM_WAIT_VALUE_GEQ);
      if (queued != CUDA_SUCCESS) throw Failure("cuStreamWaitValue64: error " + std::to_string(queued));
      check(cudaEventRecord(word_.passed, stream), "cudaEventRecord");
    } catch (...) {
      close();
      throw;
    }
  }
  ~CudaGate() override { close(); }
  CudaGate(const CudaGate&) = delete;
  CudaGate& operator=(const CudaGate&) = delete;

  bool reached() override {
    const cudaError_t state = cudaEventQuery(word_.reached);
    if (state == cudaErrorNotReady) return false;
    check(state, "cudaEventQuery");
    return true;
  }
  void open() override { std::atomic_ref(*word_.value).store(word_.last, std::memory_order_release); }

 private:
  void close() {
    open();
    words_.give_back(word_);
  }
  Words& words_;
  Word& word_;
};

class CudaGates final : public Gates {
 public:
  explicit CudaGates(Device& device) : gpu_(device.info().index), wait_(stream_wait_value()), words_(device) {}
  std::unique_ptr<Gate> on(void* stream, bool holds) override {
    const OnGpu current(gpu_);
    return std::make_unique<CudaGate>(words_, holds ? wait_ : nullptr, static_cast<cudaStream_t>(stream));
  }

 private:
  unsigned gpu_;
  WaitValue wait_;
  Words words_;
};

}  // namespace

std::unique_ptr<Gates> make_gates(Device& device) {
  if (device.kind() != "cuda") throw BadInput("stream", "a stream", "none, because the device has no streams");
  return std::make_unique<CudaGates>(device);
}

}  // namespace feedrate::storage
