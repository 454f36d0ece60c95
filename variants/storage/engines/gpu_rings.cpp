#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>
#include <thread>
#include <vector>

#include "common/error.hpp"
#include "kernels/storage/rings_kernel.hpp"
#include "libraries/storage/files.hpp"
#include "libraries/storage/slots.hpp"
#include "variants/storage/engine.hpp"
#include "variants/storage/ring_controller.hpp"

namespace feedrate::storage {
namespace {

constexpr std::size_t kMaxBlock = 65536;  // of one command: a 16-bit number of one-byte blocks
constexpr std::uint32_t kThreadsPerBlock = 128;
constexpr std::uint32_t kMaxCpuThreads = 4;  // threads of the CPU device that take the part of GPU threads

struct RingsOptions {
  std::string issue = "gpu", cache_start = "empty", fault = "none", punt = "auto";
  unsigned threads = 4096, queues = 4, timeout_ms = 5000, cache_pages = 0, cache_ways = 8;
};
const Axes<RingsOptions>& own_axes_of_gpu_rings() {
  static const auto kAxes =
      Axes<RingsOptions>()
          .word("ring-issue", &RingsOptions::issue, {"gpu", "host"},
                "gpu: GPU threads decide which blocks they read, and check them; host: GPU threads move blocks that "
                "the host lists, one kernel per list")
          .number("gpu-threads", &RingsOptions::threads, {kThreadsPerBlock, 65536, kThreadsPerBlock},
                  "GPU threads, each with one command in flight (on the CPU device: at most 4)")
          .number("ring-queues", &RingsOptions::queues, {1, 64}, "pairs of submission and completion queues")
          .number("cache-pages", &RingsOptions::cache_pages, {0, 1u << 28},
                  "blocks that the page cache in GPU memory holds; 0 = no cache (needs --ring-issue gpu)")
          .number("cache-ways", &RingsOptions::cache_ways, {1, 64}, "places in the page cache for each block")
          .word("cache-start", &RingsOptions::cache_start, {"empty", "filled"},
                "filled: all blocks are accessed once before the timed phase")
          .number("ring-timeout", &RingsOptions::timeout_ms, {1, 600'000},
                  "longest time in ms that a GPU thread waits for a completion")
          .word("ring-fault", &RingsOptions::fault, {"none", "delayed", "reordered", "lost", "failing", "early"},
                "fault that the controller injects into every 64th command")
          .word("punt", &RingsOptions::punt, {"auto", "yes", "no"},
                "let the kernel's workers run each request (IOSQE_ASYNC), so that cached blocks are copied on several "
                "cores; auto = without --direct, for blocks of at least 64 KiB");
  return kAxes;
}

RingFault fault_of(const std::string& name) {
  const std::pair<const char*, RingFault> all[] = {{"none", RingFault::none},           {"delayed", RingFault::delayed},
                                                   {"reordered", RingFault::reordered}, {"lost", RingFault::lost},
                                                   {"failing", RingFault::failing},     {"early", RingFault::early}};
  return std::ranges::find(all, name, [](const auto& each) { return each.first; })->second;
}

bool is_accessed_by_device(const EnginePoint& point) { return own_axes_of_gpu_rings().of(point.own).issue == "gpu"; }

/// What an outcome means: an errno value, or 0.
int error_of(rings::Outcome outcome) {
  const nvme::Status status = outcome.status();
  if (status.ok()) return 0;
  if (status.bits == rings::kTimedOut) return ETIMEDOUT;
  return status.type() == rings::kErrnoStatus >> 8 ? static_cast<int>(status.code()) : EIO;
}

/// Queues, staging memory and controller for a number of device threads.
class Rings {
 public:
  Rings(const PointConfig& config, const RingsOptions& options)
      : device_(config.device),
        threads_(device_.kind() == "cpu" ? std::min(options.threads, kMaxCpuThreads) : options.threads),
        count_(std::min(options.queues, threads_ / lanes())),
        files_(config),
        staging_(device_, threads_, rounded_up(config.block, 16)),
        pinned_(device_.allocate_host(count_ * pinned_bytes(), HostMemory::pinned)),
        device_memory_(device_.allocate_device(count_ * device_bytes() + count_ * sizeof(rings::Queue))),
        stream_(device_.stream()) {
    const std::uint32_t entries = entries_per_queue();
    std::vector<rings::Queue> queues(count_);
    for (std::uint32_t i = 0; i < count_; ++i) {
      std::byte* const host = pinned_.data() + i * pinned_bytes();
      std::byte* const device = device_memory_.data() + i * device_bytes();
      rings::Queue& queue = queues[i];
      queue.tail_doorbell = reinterpret_cast<std::uint32_t*>(host);
      queue.head_doorbell = reinterpret_cast<std::uint32_t*>(host + kLine);
      queue.submissions = reinterpret_cast<nvme::Command*>(host + 2 * kLine);
      queue.completions = reinterpret_cast<nvme::CompletionEntry*>(queue.submissions + entries);
      queue.entries = entries;
      queue.state = reinterpret_cast<rings::QueueState*>(device);
      queue.outcomes = reinterpret_cast<std::uint64_t*>(queue.state + 1);
    }
    stream_->fill(device_memory_.data(), 0, device_memory_.size());
    const std::size_t bytes = count_ * sizeof(rings::Queue);
    view_.queues = reinterpret_cast<rings::Queue*>(device_memory_.data() + count_ * device_bytes());
    stream_->copy_to_device(reinterpret_cast<std::byte*>(view_.queues), reinterpret_cast<std::byte*>(queues.data()),
                            bytes);
    stream_->synchronize();
    view_.count = count_;
    view_.threads = threads_;
    view_.staging = staging_.slot(0);
    view_.block = static_cast<std::uint32_t>(staging_.stride());
    view_.limit_ns = std::uint64_t{options.timeout_ms} * 1'000'000;
    controller_.emplace(RingController::Config{files_, queues, staging_.all(), config.depth,
                                               punts(options.punt, config.direct, config.block),
                                               fault_of(options.fault)});
  }
  ~Rings() {
    try {
      stream_->synchronize();          // every wait on the device has a time limit
    } catch (const std::exception&) {  // an earlier call has reported it
    }
  }
  Rings(const Rings&) = delete;
  Rings& operator=(const Rings&) = delete;

  Device& device() { return device_; }
  Stream& stream() { return *stream_; }
  RingController& controller() { return *controller_; }
  const rings::View& view() const { return view_; }

 private:
  static constexpr std::size_t kLine = 128;
  /// All lanes of a warp use the same queue; on the CPU device each thread is alone.
  std::uint32_t lanes() const { return device_.kind() == "cpu" ? 1 : 32; }
  std::uint32_t ids_per_queue() const { return (threads_ / lanes() + count_ - 1) / count_ * lanes(); }
  /// A ring with n entries holds n - 1 (NVM Express Base Specification 1.4, section 4.1).
  std::uint32_t entries_per_queue() const { return ids_per_queue() + 1; }
  std::size_t pinned_bytes() const {
    return rounded_up(2 * kLine + entries_per_queue() * (sizeof(nvme::Command) + sizeof(nvme::CompletionEntry)), kLine);
  }
  std::size_t device_bytes() const {
    return rounded_up(sizeof(rings::QueueState) + ids_per_queue() * sizeof(std::uint64_t), kLine);
  }

  Device& device_;
  std::uint32_t threads_, count_;
  OpenFiles files_;
  Staging staging_;
  Buffer pinned_, device_memory_;
  rings::View view_;
  std::optional<RingController> controller_;
  std::unique_ptr<Stream> stream_;
};

/// Device threads move the blocks that the host lists.
class GpuRings final : public Engine {
 public:
  explicit GpuRings(const PointConfig& config)
      : operation_(config.operation),
        slots_(config.depth),
        lists_(config.device.allocate_host(config.depth * sizeof(rings::ListedBlock), HostMemory::pinned)),
        ended_(config.device.event()),
        fault_(own_axes_of_gpu_rings().of(config.own).fault),
        rings_(config, own_axes_of_gpu_rings().of(config.own)) {}

  bool submit(const Request& request) override {
    if (slots_.full()) return false;
    if (reinterpret_cast<std::uintptr_t>(request.device) % 16 != 0) {
      throw Failure("engine gpu_rings needs device memory that is aligned to 16 bytes");
    }
    waiting_.push_back(slots_.take(request));
    return true;
  }
  void flush() override {
    if (waiting_.empty() || !running_.empty()) return;
    running_.swap(waiting_);
    for (std::size_t i = 0; i < running_.size(); ++i) {
      const Request& request = slots_.at(running_[i]);
      list()[i] = {request.device, request.offset, request.file, static_cast<std::uint32_t>(request.bytes), {}};
    }
    rings_.stream().launch(rings::ListLaunch(rings_.view(), list(), static_cast<std::uint32_t>(running_.size()),
                                             operation_ == Operation::read));
    rings_.stream().record(*ended_);
  }
  std::size_t poll(std::span<Completion> ended) override {
    rings_.controller().check();
    if (!running_.empty() && ended_->ready()) {
      for (std::size_t i = 0; i < running_.size(); ++i) {
        const rings::Outcome outcome = list()[i].outcome;
        slots_.bytes(running_[i]) = outcome.bytes();
        slots_.end(running_[i], error_of(outcome));
      }
      running_.clear();
    }
    flush();
    return slots_.poll(ended);
  }
  std::map<std::string, std::string> path() const override {
    std::map<std::string, std::string> path{{"mode", "pinned memory, commands by GPU threads, controller in software"}};
    if (fault_ != "none") path["injected"] = fault_;
    return path;
  }

 private:
  rings::ListedBlock* list() const { return reinterpret_cast<rings::ListedBlock*>(lists_.data()); }

  Operation operation_;
  Slots slots_;
  Buffer lists_;
  std::unique_ptr<Event> ended_;
  std::vector<std::size_t> waiting_, running_;  // slots
  std::string fault_;                           // that the controller injects
  Rings rings_;  // destroyed first: it waits for device threads, which use the list and the event
};

/// Device memory with a copy of the host's values.
template <class T>
Buffer copied(Device& device, Stream& stream, std::span<const T> values) {
  Buffer memory = device.allocate_device(std::max<std::size_t>(values.size_bytes(), 1));
  stream.copy_to_device(memory.data(), reinterpret_cast<const std::byte*>(values.data()), values.size_bytes());
  stream.synchronize();
  return memory;
}

[[noreturn]] void report_failure(const rings::Tally& tally, const PointConfig& config, const DeviceAccesses& accesses,
                                 const std::string& fault) {
  const std::uint64_t file = tally.failed_block / accesses.blocks_per_file;
  const std::uint64_t offset = tally.failed_block % accesses.blocks_per_file * config.block + accesses.shift;
  const rings::Outcome outcome{tally.failed_outcome};
  std::string why;
  if (tally.wrong_words != 0) {
    why = fmt::format("words are wrong in device memory, the first at offset {}", offset + tally.wrong_first);
  } else if (const int error = error_of(outcome); error == ETIMEDOUT) {
    why = "no completion arrived within --ring-timeout";
  } else if (error != 0) {
    why = std::strerror(error);
  } else {
    why = fmt::format("the file ended: {} of {} bytes", outcome.bytes(), config.block);
  }
  const std::string text =
      fmt::format("read of {} bytes at offset {} of {}: {}{}", config.block, offset, config.files[file].path, why,
                  fault == "none" ? "" : fmt::format(" (injected: {})", fault));
  accesses.failing(text);
  throw Failure(text);
}

/// Device threads access blocks by themselves.
DeviceAccessResult access_by_device(const PointConfig& config, const DeviceAccesses& accesses) {
  const RingsOptions options = own_axes_of_gpu_rings().of(config.own);
  Rings rings(config, options);
  Device& device = rings.device();
  Stream& stream = rings.stream();
  const std::uint32_t ways = options.cache_ways, sets = options.cache_pages / ways;
  const std::size_t pages = sets == 0 ? rings.view().threads : std::size_t{sets} * ways;
  const Buffer order = copied(device, stream, accesses.order), keys = copied(device, stream, accesses.keys);
  const Buffer entries = device.allocate_device(pages * sizeof(std::uint64_t));
  const Buffer memory = device.allocate_device(pages * config.block);
  const Buffer tallies = device.allocate_device(sizeof(rings::Tally));
  const Buffer stop = device.allocate_host(sizeof(std::uint64_t), HostMemory::pinned);
  const Buffer result = device.allocate_host(sizeof(rings::Tally), HostMemory::pinned);
  stream.fill(entries.data(), 0, entries.size());
  auto& tally = *reinterpret_cast<rings::Tally*>(result.data());

  rings::Accesses work;
  work.order = reinterpret_cast<const std::uint32_t*>(order.data());
  work.blocks = accesses.order.size();
  work.most = accesses.once ? work.blocks : ~std::uint64_t{0} / 2;
  work.blocks_per_file = accesses.blocks_per_file;
  work.shift = accesses.shift;
  work.keys = reinterpret_cast<const std::uint64_t*>(keys.data());
  work.ns = static_cast<std::uint64_t>(accesses.seconds * 1e9);
  work.cache = {reinterpret_cast<std::uint64_t*>(entries.data()), memory.data(), sets, ways,
                static_cast<std::uint32_t>(config.block)};
  work.stop = reinterpret_cast<std::uint64_t*>(stop.data());
  work.tally = reinterpret_cast<rings::Tally*>(tallies.data());
  const auto ended = device.event();
  const auto run = [&](const rings::Accesses& some) {
    tally = {};
    tally.began_ns = ~std::uint64_t{0};
    stream.copy_to_device(tallies.data(), result.data(), sizeof tally);
    stream.launch(rings::AccessLaunch(rings.view(), some));
    stream.copy_to_host(result.data(), tallies.data(), sizeof tally);
    stream.record(*ended);
    while (!ended->ready()) {
      if (accesses.stop()) SystemMemory::store_release(*work.stop, 1);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    rings.controller().check();
    if (tally.failed != 0) report_failure(tally, config, accesses, options.fault);
  };
  if (options.cache_start == "filled") {
    rings::Accesses all = work;
    all.most = work.blocks;
    all.ns = ~std::uint64_t{0};
    run(all);
  }
  run(work);

  DeviceAccessResult made{.seconds = static_cast<double>(tally.ended_ns - tally.began_ns) / 1e9,
                          .ended = tally.ended,
                          .hits = tally.hits,
                          .loads = tally.loads};
  for (std::size_t i = 0; i < rings::kTallyBuckets; ++i) {
    if (tally.latency[i] != 0) made.latency.emplace_back(rings::tally_ns(i), tally.latency[i]);
  }
  made.path = {{"mode", "pinned memory, commands by GPU threads, controller in software"},
               {"device_threads", std::to_string(rings.view().threads)},
               {"faults_injected", std::to_string(rings.controller().injected())}};
  return made;
}

std::string why_unsupported(const EnginePoint& point) {
  const RingsOptions options = own_axes_of_gpu_rings().of(point.own);
  if (point.block > kMaxBlock) return "engine gpu_rings moves at most 64 KiB per command; choose a smaller --block";
  if (const std::size_t bytes = options.threads * point.block * point.threads; bytes > kMaxMemory) {
    return fmt::format(
        "--gpu-threads {} × --block {} × --threads {} is {} bytes of pinned memory, more than the {} GiB allowed",
        options.threads, point.block, point.threads, bytes, kMaxMemory >> 30);
  }
  if (options.issue == "host") {
    return options.cache_pages != 0 ? "--cache-pages needs --ring-issue gpu" : "";
  }
  if (point.operation == Operation::write) return "--ring-issue gpu only reads; choose --ring-issue host";
  if (options.cache_start == "filled" && options.cache_pages == 0) return "--cache-start filled needs --cache-pages";
  if (options.cache_pages % options.cache_ways != 0) {
    return fmt::format("--cache-pages {} must be a multiple of --cache-ways {}", options.cache_pages,
                       options.cache_ways);
  }
  if (const std::size_t bytes = options.cache_pages * point.block * point.threads; bytes > kMaxMemory) {
    return fmt::format(
        "--cache-pages {} × --block {} × --threads {} is {} bytes of GPU memory, more than the {} GiB allowed",
        options.cache_pages, point.block, point.threads, bytes, kMaxMemory >> 30);
  }
  return "";
}

const EngineRegistration registered(
    "gpu_rings",
    {.description = "GPU threads write NVMe commands into queues in pinned memory; a host thread plays the controller",
     .axes = own_axes_of_gpu_rings().list(),
     .unavailable = Uring::unavailable,
     .why_unsupported = why_unsupported,
     .threads =
         [](const EnginePoint& point) {
           const unsigned wanted = own_axes_of_gpu_rings().of(point.own).threads;
           return 1 + (point.device == "cpu" ? std::min(wanted, kMaxCpuThreads) : 0);
         },
     .make = make_engine<GpuRings>,
     .accessed_by_device = is_accessed_by_device,
     .access = access_by_device});

}  // namespace
}  // namespace feedrate::storage
