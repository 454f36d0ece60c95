#include "feedrate/tensors.hpp"
#include "libraries/tensors/cuda_memory.hpp"

namespace feedrate::tensors {

struct SharedEvent::State {
  State(int device, cudaEvent_t made) : gpu(device), event(made) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    const OnDevice on(gpu, std::nothrow);
    cudaEventDestroy(event);
  }
  int gpu;
  cudaEvent_t event;
};

SharedEvent SharedEvent::create(int gpu) {
  const OnDevice on(gpu);
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, cudaEventInterprocess | cudaEventDisableTiming), "cudaEventCreateWithFlags");
  return SharedEvent(std::make_shared<State>(gpu, event));
}

SharedEvent SharedEvent::open(std::string_view handle, int gpu) {
  constexpr std::size_t kBytes = sizeof(cudaIpcEventHandle_t);
  if (handle.size() != kBytes) {
    throw BadInput("handle", std::to_string(handle.size()) + " bytes", std::to_string(kBytes) + " bytes");
  }
  const auto own = handle_from<cudaIpcEventHandle_t>(handle);
  const OnDevice on(gpu);
  cudaEvent_t event = nullptr;
  check(cudaIpcOpenEventHandle(&event, own), "cudaIpcOpenEventHandle");
  return SharedEvent(std::make_shared<State>(gpu, event));
}

std::string SharedEvent::handle() const {
  const OnDevice on(state_->gpu);
  cudaIpcEventHandle_t own{};
  check(cudaIpcGetEventHandle(&own, state_->event), "cudaIpcGetEventHandle");
  return bytes_of_handle(own);
}

void SharedEvent::record(void* stream) const {
  const OnDevice on(state_->gpu);
  check(cudaEventRecord(state_->event, static_cast<cudaStream_t>(stream)), "cudaEventRecord");
}

void SharedEvent::wait_on(void* stream) const {
  const OnDevice on(state_->gpu);
  check(cudaStreamWaitEvent(static_cast<cudaStream_t>(stream), state_->event, 0), "cudaStreamWaitEvent");
}

bool SharedEvent::done() const {
  const OnDevice on(state_->gpu);
  const cudaError_t found = cudaEventQuery(state_->event);
  if (found == cudaErrorNotReady) return false;
  check(found, "cudaEventQuery");
  return true;
}

}  // namespace feedrate::tensors
