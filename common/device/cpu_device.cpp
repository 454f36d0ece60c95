#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <fstream>
#include <mutex>
#include <new>
#include <thread>
#include <vector>

#include "common/device/device.hpp"
#include "common/error.hpp"
#include "common/threads.hpp"

namespace feedrate {
namespace {

Buffer allocate(std::size_t bytes) {
  constexpr std::align_val_t kAlignment{4096};
  auto* data = static_cast<std::byte*>(::operator new(bytes, kAlignment));
  std::memset(data, 0, bytes);
  return {data, bytes, [](std::byte* p) { ::operator delete(p, kAlignment); }};
}

class CpuEvent final : public Event {
 public:
  bool ready() override { return done_.load(std::memory_order_acquire); }
  void set(bool done) { done_.store(done, std::memory_order_release); }

 private:
  std::atomic<bool> done_{false};
};

/// A thread that does queued tasks in order, as a CUDA stream does.
class CpuStream final : public Stream {
 public:
  CpuStream() : thread_([this](const std::stop_token& stop) { run(stop); }) {}

  void copy_to_device(std::byte* device, const std::byte* host, std::size_t bytes) override {
    enqueue([=] { std::memcpy(device, host, bytes); });
  }
  void copy_to_host(std::byte* host, const std::byte* device, std::size_t bytes) override {
    enqueue([=] { std::memcpy(host, device, bytes); });
  }
  void launch(const Kernel& kernel, const BatchView& batch, unsigned /*block*/) override {
    enqueue([&kernel, batch] { kernel.run_on_cpu(batch); });
  }
  void record(Event& event) override {
    auto& mine = dynamic_cast<CpuEvent&>(event);
    mine.set(false);
    enqueue([&mine] { mine.set(true); });
  }
  void synchronize() override {
    std::unique_lock lock(mutex_);
    idle_.wait(lock, [this] { return tasks_.empty() && !busy_; });
  }

 private:
  void enqueue(std::function<void()> task) {
    {
      const std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(task));
    }
    added_.notify_one();
  }
  void run(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (added_.wait(lock, stop, [this] { return !tasks_.empty(); })) {
      const auto task = std::move(tasks_.front());
      tasks_.pop_front();
      busy_ = true;
      lock.unlock();
      task();
      lock.lock();
      busy_ = false;
      if (tasks_.empty()) idle_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable_any added_, idle_;
  std::deque<std::function<void()>> tasks_;
  bool busy_ = false;
  std::jthread thread_;  // last: it uses all of the above
};

/// The resident form: threads instead of blocks, each serving some of the rings in turn by the same protocol.
class CpuResident final : public Resident {
 public:
  CpuResident(const Kernel& kernel, std::span<const RingView> rings, unsigned threads) : alive_(threads) {
    for (unsigned t = 0; t < threads; ++t) {
      std::vector<RingView> mine;
      for (std::size_t r = t; r < rings.size(); r += threads) mine.push_back(rings[r]);
      threads_.emplace_back([this, &kernel, mine = std::move(mine)] {
        serve(kernel, mine);
        alive_.fetch_sub(1);
      });
    }
  }
  bool running() override { return alive_.load() != 0; }
  unsigned host_threads() const override { return static_cast<unsigned>(threads_.size()); }

 private:
  static constexpr std::uint64_t kMostAtOnce = 256;

  static void serve(const Kernel& kernel, const std::vector<RingView>& rings) {
    std::vector<RingServer> servers(rings.begin(), rings.end());
    std::vector<std::byte> scratch;  // of one flagged message and its result
    Backoff backoff;
    while (true) {
      bool worked = false, all_ended = true;
      for (std::size_t r = 0; r < rings.size(); ++r) {
        RingServer& server = servers[r];
        const auto waiting = server.waiting();
        if (server.ended()) continue;
        all_ended = false;
        if (waiting == 0) continue;
        worked = true;
        const auto n = rings[r].contiguous(server.taken(), std::min(waiting, kMostAtOnce));
        serve_run(kernel, rings[r], server.taken(), static_cast<std::uint32_t>(n), scratch);
        server.take(n);
        server.complete(n);
      }
      if (all_ended) return;
      worked ? backoff.reset() : backoff.wait();
    }
  }

  /// `n` messages from `first` on, side by side.
  static void serve_run(const Kernel& kernel, const RingView& ring, std::uint64_t first, std::uint32_t n,
                        std::vector<std::byte>& scratch) {
    if (ring.flagged == 0) {
      kernel.run_on_cpu({ring.in_slot(first), ring.out_slot(first), ring.in_stride, ring.out_stride, n});
      return;
    }
    scratch.resize(ring.in_stride + ring.out_stride);
    std::byte *const in = scratch.data(), *const out = in + ring.in_stride;
    for (std::uint64_t number = first; number < first + n; ++number) {
      load_flagged(ring.in_slot(number), number, in, ring.in_stride);  // `published` says that it is there
      kernel.run_on_cpu({in, out, ring.in_stride, ring.out_stride, 1});
      store_flagged(ring.out_slot(number), number, out, ring.out_stride);
    }
  }

  std::atomic<unsigned> alive_;
  std::vector<std::jthread> threads_;
};

class CpuDevice final : public Device {
 public:
  std::string_view kind() const override { return "cpu"; }
  DeviceInfo info() const override {
    const auto pages = static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES));
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    return {cpu_model(), available_cores(), pages * page, "", "", ""};
  }
  Buffer allocate_host(std::size_t bytes, HostMemory) override { return allocate(bytes); }
  Buffer allocate_device(std::size_t bytes) override { return allocate(bytes); }
  std::unique_ptr<Stream> stream() override { return std::make_unique<CpuStream>(); }
  std::unique_ptr<Event> event() override { return std::make_unique<CpuEvent>(); }
  unsigned most_rings(const Kernel&, unsigned) override { return 1024; }
  std::unique_ptr<Resident> start_resident(const Kernel& kernel, std::span<const RingView> rings, unsigned) override {
    // Half of the cores serve, the others produce and collect.
    const auto threads = std::min<std::size_t>(rings.size(), std::max(1u, available_cores() / 2));
    return std::make_unique<CpuResident>(kernel, rings, static_cast<unsigned>(threads));
  }
};

}  // namespace

std::string cpu_model() {
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown CPU";
}

std::unique_ptr<Device> open_cpu_device() { return std::make_unique<CpuDevice>(); }

std::unique_ptr<Device> open_device(const std::string& kind, unsigned index) {
  if (kind == "cpu") return open_cpu_device();
  if (kind != "cuda" && kind != "auto") throw BadInput("--device", kind, "cuda, cpu, auto");
  const std::string reason = cuda_unavailable();
  if (reason.empty()) return open_cuda_device(index);
  if (kind == "auto") return open_cpu_device();
  throw BadInput("--device", kind, "cpu (" + reason + ")");
}

}  // namespace feedrate
