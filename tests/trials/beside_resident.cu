// Shows which CUDA calls wait for a resident kernel, and which other calls they block while they wait:
//   nvcc -O2 -std=c++20 -o beside_resident tests/trials/beside_resident.cu && ./beside_resident
// Prints one JSON line per call. `waits`: the call had not returned after 300 ms. `ends_with_the_kernel`: it returned
// once the kernel had left. `holds`: calls made by another thread in the meantime did not return either, so that a
// watchdog can detect the wait by making them.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <cuda_runtime.h>

namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}
#define CHECK(call) check(call, #call)

__global__ void stay(volatile unsigned* leave) {
  const auto begin = clock64();
  while (*leave == 0 && clock64() - begin < 20'000'000'000) {
  }
}
template <int number>
__global__ void increment(unsigned* word) {
  *word += number;
}

struct Call {
  std::string name;
  std::function<void()> prepare, make, finish;
};

/// Runs one function in a thread and reports whether it has finished.
class Doing {
 public:
  explicit Doing(std::function<void()> what) : thread_([this, what = std::move(what)] { what(), done_ = true; }) {}
  ~Doing() { thread_.join(); }
  bool done_within(Clock::duration time) const {
    const auto until = Clock::now() + time;
    while (!done_ && Clock::now() < until) std::this_thread::sleep_for(100us);
    return done_;
  }

 private:
  std::atomic<bool> done_{false};
  std::thread thread_;
};

}  // namespace

int main() {
  unsigned *leave = nullptr, *word = nullptr;
  CHECK(cudaHostAlloc(&leave, 4, cudaHostAllocMapped));
  CHECK(cudaMalloc(&word, 4));
  cudaStream_t resident, other;
  CHECK(cudaStreamCreateWithFlags(&resident, cudaStreamNonBlocking));
  CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  cudaEvent_t event;
  CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  increment<0><<<1, 1, 0, other>>>(word);
  CHECK(cudaStreamSynchronize(other));

  void *memory = nullptr, *host = nullptr;
  cudaStream_t made;
  cudaEvent_t an_event;
  cudaGraph_t graph;
  cudaGraphExec_t instance;
  std::vector<char> pageable(1 << 20);
  const auto none = [] {};
  const auto allocate = [&] { CHECK(cudaMalloc(&memory, 64 << 20)); };
  const auto free = [&] { CHECK(cudaFree(memory)); };
  const auto capture = [&] {
    CHECK(cudaStreamBeginCapture(other, cudaStreamCaptureModeThreadLocal));
    increment<0><<<1, 1, 0, other>>>(word);
    CHECK(cudaStreamEndCapture(other, &graph));
  };
  const std::vector<Call> calls = {
      {"cudaMalloc", none, allocate, free},
      {"cudaFree", allocate, free, none},
      {"cudaMallocAsync", none, [&] { CHECK(cudaMallocAsync(&memory, 64 << 20, other)); },
       [&] { CHECK(cudaFreeAsync(memory, other)); }},
      {"cudaFreeAsync and cudaStreamSynchronize", [&] { CHECK(cudaMallocAsync(&memory, 64 << 20, other)); },
       [&] { CHECK(cudaFreeAsync(memory, other)), CHECK(cudaStreamSynchronize(other)); }, none},
      {"cudaMallocManaged", none, [&] { CHECK(cudaMallocManaged(&memory, 1 << 20)); }, free},
      {"cudaHostAlloc", none, [&] { CHECK(cudaHostAlloc(&host, 1 << 20, 0)); }, [&] { CHECK(cudaFreeHost(host)); }},
      {"cudaFreeHost", [&] { CHECK(cudaHostAlloc(&host, 1 << 20, 0)); }, [&] { CHECK(cudaFreeHost(host)); }, none},
      {"cudaHostRegister", none, [&] { CHECK(cudaHostRegister(pageable.data(), pageable.size(), 0)); },
       [&] { CHECK(cudaHostUnregister(pageable.data())); }},
      {"cudaHostUnregister", [&] { CHECK(cudaHostRegister(pageable.data(), pageable.size(), 0)); },
       [&] { CHECK(cudaHostUnregister(pageable.data())); }, none},
      {"cudaMemcpy from pageable memory", none, [&] { CHECK(cudaMemcpy(word, pageable.data(), 4, cudaMemcpyDefault)); },
       none},
      {"cudaMemset", none, [&] { CHECK(cudaMemset(word, 0, 4)); }, none},
      {"launch and cudaStreamSynchronize", none,
       [&] { increment<0><<<1, 1, 0, other>>>(word), CHECK(cudaStreamSynchronize(other)); }, none},
      {"launch into the legacy stream and cudaStreamSynchronize", none,
       [&] { increment<0><<<1, 1>>>(word), CHECK(cudaStreamSynchronize(cudaStreamLegacy)); }, none},
      {"first launch of a kernel", none,
       [&] { increment<1><<<1, 1, 0, other>>>(word), CHECK(cudaStreamSynchronize(other)); }, none},
      {"cudaFuncGetAttributes of a kernel that is not loaded", none,
       [&] {
         cudaFuncAttributes attributes;
         CHECK(cudaFuncGetAttributes(&attributes, increment<2>));
       },
       none},
      {"capture, cudaGraphInstantiate, cudaGraphLaunch, cudaStreamSynchronize", none,
       [&] {
         capture();
         CHECK(cudaGraphInstantiate(&instance, graph, 0));
         CHECK(cudaGraphLaunch(instance, other)), CHECK(cudaStreamSynchronize(other));
       },
       [&] { CHECK(cudaGraphExecDestroy(instance)), CHECK(cudaGraphDestroy(graph)); }},
      {"cudaGraphExecDestroy", [&] { capture(), CHECK(cudaGraphInstantiate(&instance, graph, 0)); },
       [&] { CHECK(cudaGraphExecDestroy(instance)); }, [&] { CHECK(cudaGraphDestroy(graph)); }},
      {"cudaStreamCreate", none, [&] { CHECK(cudaStreamCreate(&made)); }, [&] { CHECK(cudaStreamDestroy(made)); }},
      {"cudaStreamDestroy", [&] { CHECK(cudaStreamCreate(&made)); }, [&] { CHECK(cudaStreamDestroy(made)); }, none},
      {"cudaEventCreate, cudaEventRecord, cudaEventSynchronize", none,
       [&] {
         CHECK(cudaEventCreate(&an_event)), CHECK(cudaEventRecord(an_event, other));
         CHECK(cudaEventSynchronize(an_event));
       },
       [&] { CHECK(cudaEventDestroy(an_event)); }},
      {"cudaMemGetInfo", none,
       [&] {
         std::size_t left = 0, all = 0;
         CHECK(cudaMemGetInfo(&left, &all));
       },
       none},
      {"cudaDeviceSynchronize", none, [&] { CHECK(cudaDeviceSynchronize()); }, none},
  };
  for (const Call& call : calls) {
    call.prepare();
    *leave = 0;
    stay<<<1, 1, 0, resident>>>(leave);
    CHECK(cudaGetLastError());
    std::this_thread::sleep_for(20ms);
    bool waits = false, ended = false, query = true, launch = true;
    {
      const Doing doing(call.make);
      waits = !doing.done_within(300ms);
      if (waits) {
        const Doing asks([&] { (void)cudaEventQuery(event); });
        query = asks.done_within(100ms);
        const Doing launches([&] { (void)cudaEventRecord(event, other); });
        launch = launches.done_within(100ms);
        *leave = 1;
        ended = doing.done_within(5s);
      }
      *leave = 1;
    }
    CHECK(cudaStreamSynchronize(resident));
    call.finish();
    std::printf(R"({"call": "%s", "waits": %s, "ends_with_the_kernel": %s, "holds": {"cudaEventQuery": %s, )"
                R"("cudaEventRecord": %s}})"
                "\n",
                call.name.c_str(), waits ? "true" : "false", waits ? (ended ? "true" : "false") : "null",
                query ? "false" : "true", launch ? "false" : "true");
    std::fflush(stdout);
  }
}
