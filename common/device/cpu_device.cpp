#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <fstream>
#include <mutex>
#include <new>
#include <optional>
#include <queue>
#include <thread>
#include <vector>

#include "common/clock.hpp"
#include "common/device/device.hpp"
#include "common/device/device_clock.hpp"
#include "common/error.hpp"
#include "common/ring/flagged_poll.hpp"
#include "common/threads/threads.hpp"

namespace feedrate {
namespace {

constexpr std::align_val_t kAlignment{4096};

Buffer allocate(std::size_t bytes, std::optional<int> filled_with) {
  auto* data = static_cast<std::byte*>(::operator new(bytes, kAlignment, std::nothrow));
  if (data == nullptr) throw Failure("cannot allocate " + std::to_string(bytes) + " bytes of memory");
  if (filled_with) std::memset(data, *filled_with, bytes);
  return {data, bytes, [](std::byte* p) { ::operator delete(p, kAlignment); }};
}

/// Counts the event's recordings and how many of them have been reached. A stream waits for the recording that was the
/// latest when `wait` was called.
class CpuEvent final : public Event {
 public:
  bool ready() override { return reached(recorded_); }
  std::uint64_t ready_ns() override { return ready_ns_; }
  double ns_since(const Event& earlier) const override {
    return static_cast<double>(static_cast<std::int64_t>(ready_ns_ - static_cast<const CpuEvent&>(earlier).ready_ns_));
  }
  /// Returns the number of this recording. Called by the thread that queues the recording.
  std::uint64_t record() { return ++recorded_; }
  std::uint64_t recorded() const { return recorded_; }
  bool reached(std::uint64_t recording) const { return reached_.load(std::memory_order_acquire) >= recording; }
  /// Called by a stream's thread.
  void complete(std::uint64_t recording) {
    ready_ns_ = now_ns();
    reached_.store(recording, std::memory_order_release);
    reached_.notify_all();
  }
  void await(std::uint64_t recording) const {
    for (std::uint64_t seen = reached_.load(std::memory_order_acquire); seen < recording;
         seen = reached_.load(std::memory_order_acquire)) {
      reached_.wait(seen, std::memory_order_acquire);
    }
  }

 private:
  std::uint64_t recorded_ = 0;
  std::atomic<std::uint64_t> reached_{0};
  std::uint64_t ready_ns_ = 0;  // valid once the event is ready
};

/// Turns queued operations into tasks.
class CpuTasks : public Stream {
 public:
  void copy_to_device(std::byte* device, const std::byte* host, std::size_t bytes) override {
    enqueue([=] { std::memcpy(device, host, bytes); });
  }
  void copy_to_host(std::byte* host, const std::byte* device, std::size_t bytes) override {
    enqueue([=] { std::memcpy(host, device, bytes); });
  }
  void copy_batch(std::span<const Copy> copies, Direction) override {
    enqueue([mine = std::vector(copies.begin(), copies.end())] {
      for (const Copy& copy : mine) std::memcpy(copy.to, copy.from, copy.bytes);
    });
  }
  void copy_to_peer(std::byte* to, const std::byte* from, std::size_t bytes) override {
    enqueue([=] { std::memcpy(to, from, bytes); });
  }
  void launch(const Launchable& launchable) override { enqueue(launchable.on_cpu()); }
  void fill(std::byte* device, unsigned char value, std::size_t bytes) override {
    enqueue([=] { std::memset(device, value, bytes); });
  }
  std::byte* allocate(std::size_t bytes) override {
    auto* const data = static_cast<std::byte*>(::operator new(bytes, kAlignment));
    enqueue([=] { std::memset(data, kPoison, bytes); });
    return data;
  }
  void free(std::byte* data) override {
    enqueue([=] { ::operator delete(data, kAlignment); });
  }
  void write_word(std::uint64_t* device, std::uint64_t value) override {
    enqueue([=] { SystemMemory::store_release(*device, value); });
  }
  void record(Event& event) override {
    auto& mine = dynamic_cast<CpuEvent&>(event);
    enqueue([&mine, number = mine.record()] { mine.complete(number); });
  }
  void wait(Event& event) override {
    auto& mine = dynamic_cast<CpuEvent&>(event);
    enqueue([&mine, number = mine.recorded()] { mine.await(number); });
  }

  /// Queues a task.
  virtual void enqueue(std::function<void()> task) = 0;
};

/// A thread that runs queued tasks in order, as a CUDA stream does.
class CpuStream final : public CpuTasks {
 public:
  CpuStream() : thread_([this](const std::stop_token& stop) { serve(stop); }) {}

  void synchronize() override {
    std::unique_lock lock(mutex_);
    idle_.wait(lock, [this] { return tasks_.empty() && !busy_; });
  }
  void enqueue(std::function<void()> task) override {
    {
      const std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(task));
    }
    added_.notify_one();
  }

 private:
  void serve(const std::stop_token& stop) {
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
  std::jthread thread_;  // declared last because it uses all of the above
};

/// Records queued tasks without running them.
class CpuCapture final : public CpuTasks {
 public:
  void enqueue(std::function<void()> task) override { tasks.push_back(std::move(task)); }
  void synchronize() override { reject(); }
  std::byte* allocate(std::size_t) override { return reject(); }
  void free(std::byte*) override { reject(); }
  void record(Event&) override { reject(); }
  void wait(Event&) override { reject(); }
  std::vector<std::function<void()>> tasks;

 private:
  static std::byte* reject() { throw Failure("a graph can capture only copies, fills and kernels"); }
};

/// Runs its nodes one after another. Of the nodes that are ready, it always runs the one added last, which exposes
/// missing dependencies.
class CpuGraph final : public Graph {
 public:
  Node add(const Copy& copy, Direction, std::span<const Node> after) override { return keep({.copy = copy}, after); }
  Node add(const Kernel& kernel, const BatchView& batch, unsigned, std::span<const Node> after) override {
    return keep({.kernel = &kernel, .batch = batch}, after);
  }
  Node add(const Launchable& launchable, std::span<const Node> after) override {
    return add(launchable.on_cpu(), after);
  }
  Node add(std::function<void()> task, std::span<const Node> after) { return keep({.task = std::move(task)}, after); }
  void change(Node node, const Copy& copy) override { nodes_.at(node).copy = copy; }
  void change(Node node, const BatchView& batch) override {
    if (nodes_.at(node).kernel == nullptr) throw Failure("this graph node does not process messages");
    nodes_[node].batch = batch;
  }
  void set_excluded(Node node, bool excluded) override { nodes_.at(node).excluded = excluded; }
  void launch(Stream& stream) override {
    if (order_.empty()) put_in_order();
    std::vector<Work> work;
    for (const Node node : order_) {
      if (!nodes_[node].excluded) work.push_back(nodes_[node]);
    }
    dynamic_cast<CpuTasks&>(stream).enqueue([work = std::move(work)] {
      for (const Work& node : work) {
        if (node.task) {
          node.task();
        } else if (node.kernel != nullptr) {
          node.kernel->run_on_cpu(node.batch);
        } else {
          std::memcpy(node.copy.to, node.copy.from, node.copy.bytes);
        }
      }
    });
  }

 private:
  struct Work {
    Copy copy = {};
    const Kernel* kernel = nullptr;  ///< null: the node is a copy
    BatchView batch = {};
    std::function<void()> task = {};
    bool excluded = false;
  };
  Node keep(const Work& work, std::span<const Node> after) {
    if (!order_.empty()) throw Failure("nodes cannot be added to a graph that has been launched");
    nodes_.push_back(work);
    next_.emplace_back();
    before_.push_back(after.size());
    for (const Node node : after) next_.at(node).push_back(nodes_.size() - 1);
    return nodes_.size() - 1;
  }
  void put_in_order() {
    std::vector<std::size_t> waiting = before_;
    std::priority_queue<Node> possible;
    for (Node node = 0; node < nodes_.size(); ++node) {
      if (waiting[node] == 0) possible.push(node);
    }
    while (!possible.empty()) {
      const Node node = possible.top();
      possible.pop();
      order_.push_back(node);
      for (const Node next : next_[node]) {
        if (--waiting[next] == 0) possible.push(next);
      }
    }
  }

  std::vector<Work> nodes_;
  std::vector<std::vector<Node>> next_;  // indexed by node: the nodes that wait for it
  std::vector<std::size_t> before_;      // indexed by node: the number of nodes that it waits for
  std::vector<Node> order_;              // filled by the first launch
};

/// Runs the resident form with threads instead of blocks. Each thread polls some of the lanes in turn, using the same
/// protocol.
class CpuResident final : public Resident {
 public:
  CpuResident(const Kernel& kernel, std::span<const LaneView> lanes, const ResidentShape& shape, unsigned threads)
      : kernel_(kernel), shape_(shape), states_(lanes.size()), alive_(threads) {
    // Poller p of lane l is thread (l * pollers + p) % threads.
    std::vector<std::vector<Poller>> pollers(threads);
    for (std::size_t l = 0, next = 0; l < lanes.size(); ++l) {
      states_[l] = lane_start(lanes[l], shape.pollers);
      for (unsigned p = 0; p < shape.pollers; ++p) {
        pollers[next++ % threads].push_back(
            {lanes[l], {lanes[l], &states_[l]}, {lanes[l], p % lanes[l].mirrors, shape.max_flagged_per_poll}});
      }
    }
    for (auto& mine : pollers) {
      threads_.emplace_back([this, mine = std::move(mine)]() mutable {
        serve(std::move(mine));
        alive_.fetch_sub(1);
      });
    }
  }
  bool running() override { return alive_.load() != 0; }
  unsigned host_threads() const override { return static_cast<unsigned>(threads_.size()); }

 private:
  static constexpr std::uint64_t kMaxAtOnce = 256;
  struct Poller {
    LaneView lane;
    LaneServer server;
    FlaggedPoll flagged_poll;
    std::uint64_t idle_at = 0;  // the latest known value of the next number to claim
    std::uint64_t idle_since = now_ns();
  };

  void serve(std::vector<Poller> pollers) {
    std::vector<std::byte> scratch;  // flagged messages and their results
    Backoff backoff;
    while (!pollers.empty()) {
      bool worked = false;
      std::erase_if(pollers, [&](Poller& poller) {
        const Poll polled = serve_once(poller, scratch);
        worked = worked || polled == Poll::claimed;
        if (polled == Poll::nothing) leave_if_idle(poller);
        if (polled == Poll::gone) poller.server.depart();
        return polled == Poll::gone;
      });
      worked ? backoff.reset() : backoff.wait();
    }
  }

  /// The lane is idle only if no poller claims. If just this poller claims nothing, the others may merely be faster.
  void leave_if_idle(Poller& poller) {
    const std::uint64_t next = poller.server.next();
    if (next != poller.idle_at) {
      poller.idle_at = next;
      poller.idle_since = now_ns();
    } else if (!poller.flagged_poll.holds() && now_ns() - poller.idle_since > shape_.idle.leave_after_ns) {
      poller.server.leave(next);
    }
  }

  Poll serve_once(Poller& poller, std::vector<std::byte>& scratch) {
    const LaneView& lane = poller.lane;
    const RingView& ring = lane.ring;
    if (lane.notify == Notify::flags) return serve_flagged(poller, scratch);
    Claim claim;
    const Poll polled = poller.server.poll(kMaxAtOnce, shape_.pollers, claim);
    if (polled != Poll::claimed) return polled;
    RecorderState recorder = lane.recorder;
    if (recorder.wanted()) recorder.claimed_ns = device_clock_ns();
    kernel_.run_on_cpu({ring.in_slot(claim.first), ring.out_slot(claim.first), ring.in_stride, ring.out_stride,
                        static_cast<std::uint32_t>(claim.count), recorder});
    if (lane.results == ResultOrder::in_order) {
      poller.server.complete(claim);
    } else {
      for (std::uint64_t i = 0; i < claim.count; ++i) poller.server.finish(claim.first + i);
    }
    return polled;
  }

  Poll serve_flagged(Poller& poller, std::vector<std::byte>& scratch) {
    const LaneView& lane = poller.lane;
    const std::size_t in_stride = lane.ring.in_stride, out_stride = lane.ring.out_stride;
    const std::size_t in_bytes = shape_.max_flagged_per_poll * in_stride + 2 * sizeof(Unit);
    scratch.resize(in_bytes + shape_.max_flagged_per_poll * out_stride + sizeof(Unit));
    std::byte *const in = scratch.data(), *const out = in + in_bytes;
    FlaggedPoll::Found found;
    if (const Poll polled = poller.flagged_poll(poller.server, in, found); polled != Poll::claimed) return polled;
    const Claim& claim = found.claim;
    kernel_.run_on_cpu({found.at, out, lane.ring.in_stride, lane.ring.out_stride,
                        static_cast<std::uint32_t>(claim.count), lane.recorder});
    for (std::uint64_t i = 0; i < claim.count; ++i) {
      const std::byte* const result = out + i * out_stride;
      const std::size_t length = payload_bytes(*reinterpret_cast<const Header*>(result));
      store_flagged(lane.unit_out(claim.first + i), claim.first + i, result, units_of(sizeof(Header) + length));
    }
    return Poll::claimed;
  }

  const Kernel& kernel_;
  ResidentShape shape_;
  std::vector<LaneState> states_;
  std::atomic<unsigned> alive_;
  std::vector<std::jthread> threads_;
};

class CpuDevice final : public Device {
 public:
  std::string_view kind() const override { return "cpu"; }
  DeviceInfo info() const override { return describe_cpu(); }
  Buffer allocate_host(std::size_t bytes, HostMemory) override { return allocate(bytes, 0); }
  Buffer allocate_device(std::size_t bytes, Fresh fresh) override {
    return allocate(bytes, fresh == Fresh::poisoned ? std::optional(kPoison) : std::nullopt);
  }
  Buffer pin(std::byte* data, std::size_t bytes, Access) override {
    return {data, bytes, [](std::byte*) {}};
  }
  std::unique_ptr<Stream> stream() override { return std::make_unique<CpuStream>(); }
  std::unique_ptr<Graph> capture(const std::function<void(Stream&)>& body) override {
    CpuCapture captured;
    body(captured);
    auto graph = std::make_unique<CpuGraph>();
    std::vector<Graph::Node> before;
    for (auto& task : captured.tasks) before.assign(1, graph->add(std::move(task), before));
    return graph;
  }
  std::optional<KernelResources> resources(const Launchable&) override { return std::nullopt; }
  std::unique_ptr<Event> event(bool /*timed*/) override { return std::make_unique<CpuEvent>(); }
  std::unique_ptr<Graph> graph() override { return std::make_unique<CpuGraph>(); }
  bool copies_in_batches() const override { return true; }
  std::string enable_peer_access(Device& other) override {
    return other.kind() == "cpu" ? "" : "CPU threads cannot read a GPU's memory";
  }
  ClockReading read_clock() override {
    const std::uint64_t now = now_ns();
    return {now, now};  // the device's clock is the host's
  }
  unsigned max_lanes(const Kernel&, const ResidentShape&) override { return 1024; }
  std::unique_ptr<Resident> start_resident(const Kernel& kernel, std::span<const LaneView> lanes,
                                           const ResidentShape& shape) override {
    // Half of the cores serve; the others produce and collect.
    const std::size_t pollers = lanes.size() * shape.pollers;
    const auto threads = std::min<std::size_t>(pollers, std::max(1u, available_cores() / 2));
    return std::make_unique<CpuResident>(kernel, lanes, shape, static_cast<unsigned>(threads));
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

DeviceInfo describe_cpu() {
  const auto pages = static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES));
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
  DeviceInfo info{"cpu", cpu_model(), available_cores(), pages * page, "", "", ""};
  info.cache = static_cast<std::size_t>(std::max(cache, 0L));
  return info;
}

namespace {

/// Returns `cpu` or `cuda`; throws BadInput if there is no such device.
std::string kind_of(const std::string& kind) {
  if (kind != "cpu" && kind != "cuda" && kind != "auto") throw BadInput("--device", kind, "cuda, cpu, auto");
  if (kind == "cpu") return kind;
  const std::string reason = cuda_unavailable();
  if (kind == "cuda" && !reason.empty()) throw BadInput("--device", kind, "cpu (" + reason + ")");
  return reason.empty() ? "cuda" : "cpu";
}

}  // namespace

std::unique_ptr<Device> open_device(const std::string& kind, unsigned index) {
  return kind_of(kind) == "cpu" ? open_cpu_device() : open_cuda_device(index);
}

DeviceInfo describe_device(const std::string& kind, unsigned index) {
  return kind_of(kind) == "cpu" ? describe_cpu() : describe_gpu(index);
}

std::optional<unsigned> other_gpu(Device& device) {
  if (device.kind() == "cpu") return std::nullopt;
  const std::string taken = device.info().pci_bus;
  try {
    for (unsigned index = 0;; ++index) {
      if (describe_gpu(index).pci_bus != taken) return index;
    }
  } catch (const BadInput&) {  // there are no more GPUs
    return std::nullopt;
  }
}

}  // namespace feedrate
