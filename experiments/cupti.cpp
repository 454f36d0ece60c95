#include "experiments/cupti.hpp"

#include "common/error.hpp"

#ifndef FEEDRATE_CUPTI

namespace feedrate {

std::string cupti_unavailable() { return "built without CUPTI's header"; }
void prepare_ranges() {}
std::unique_ptr<ActivityRecorder> open_activity_recorder(std::size_t) { throw Failure(cupti_unavailable()); }

}  // namespace feedrate

#else

#include <cupti.h>
#include <cxxabi.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "common/clock.hpp"

namespace feedrate {
namespace {

/// In the order of the search: the loader's own paths, a bundle's folder, then those of CUDA's packages. The header's
/// version comes first; of each record only members that all of them have are read.
constexpr std::array kPlaces{
    "libcupti.so.13",
    "$ORIGIN/../lib/libcupti.so.13",
    "/usr/local/cuda/lib64/libcupti.so.13",
    "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so.13",
    "libcupti.so.12",
    "$ORIGIN/../lib/libcupti.so.12",
    "/usr/local/cuda/lib64/libcupti.so.12",
    "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so.12",
    "libcupti.so",
    "/usr/local/cuda/lib64/libcupti.so",
    "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so",
};

template <class Signature>
class Function;
/// A function of the library, of the type that the header declares. A call throws Failure when it fails.
template <class... Args>
class Function<CUptiResult(Args...)> {
 public:
  Function(void* library, const char* name)
      : name_(name),
        function_(library == nullptr ? nullptr : reinterpret_cast<CUptiResult (*)(Args...)>(dlsym(library, name))) {}
  const char* name() const { return name_; }
  bool there() const { return function_ != nullptr; }
  CUptiResult result(Args... args) const { return function_(args...); }
  void operator()(Args... args) const;

 private:
  const char* name_;
  CUptiResult (*function_)(Args...);
};

void* open_library() {
  for (const char* place : kPlaces) {
    // It has threads and handlers of its own, so it stays to the end.
    if (void* library = dlopen(place, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE)) return library;
  }
  return nullptr;
}

/// The library as far as it is used here.
struct Cupti {
  void* library = open_library();
  Function<decltype(cuptiActivityEnable)> enable{library, "cuptiActivityEnable"};
  Function<decltype(cuptiActivityDisable)> disable{library, "cuptiActivityDisable"};
  Function<decltype(cuptiActivityEnableRuntimeApi)> enable_runtime{library, "cuptiActivityEnableRuntimeApi"};
  Function<decltype(cuptiActivityEnableDriverApi)> enable_driver{library, "cuptiActivityEnableDriverApi"};
  Function<decltype(cuptiActivityFlushAll)> flush{library, "cuptiActivityFlushAll"};
  Function<decltype(cuptiActivityGetNextRecord)> next_record{library, "cuptiActivityGetNextRecord"};
  Function<decltype(cuptiActivityGetNumDroppedRecords)> dropped{library, "cuptiActivityGetNumDroppedRecords"};
  Function<decltype(cuptiActivityRegisterCallbacks)> callbacks{library, "cuptiActivityRegisterCallbacks"};
  Function<decltype(cuptiActivityRegisterTimestampCallback)> clock{library, "cuptiActivityRegisterTimestampCallback"};
  Function<decltype(cuptiActivitySetAttribute)> set_attribute{library, "cuptiActivitySetAttribute"};
  Function<decltype(cuptiGetCallbackName)> callback_name{library, "cuptiGetCallbackName"};
  Function<decltype(cuptiGetResultString)> result_string{library, "cuptiGetResultString"};
  Function<decltype(cuptiSetThreadIdType)> thread_ids{library, "cuptiSetThreadIdType"};

  std::string unavailable() const {
    if (library == nullptr) return fmt::format("CUPTI is missing: no {} or other version was found", kPlaces[0]);
    std::string reason;
    const auto need = [&](const auto& function) {
      if (!function.there()) reason = fmt::format("this CUPTI is too old: it has no {}", function.name());
    };
    const auto need_all = [&](const auto&... functions) { (need(functions), ...); };
    need_all(enable, disable, enable_runtime, enable_driver, flush, next_record, dropped, callbacks, clock,
             set_attribute, callback_name, result_string, thread_ids);
    return reason;
  }
};

/// Loaded once, when first asked for: it can't be unloaded safely, nor does NVTX load it twice.
const Cupti& cupti() {
  static const Cupti library;
  return library;
}

template <class... Args>
void Function<CUptiResult(Args...)>::operator()(Args... args) const {
  const CUptiResult result = function_(args...);
  if (result == CUPTI_SUCCESS) return;
  const char* text = nullptr;
  cupti().result_string.result(result, &text);
  throw Failure(fmt::format("{}: {}", name_, text != nullptr ? text : std::to_string(result).c_str()));
}

/// Calls `each(record)` for the records of a buffer.
template <class Each>
void for_records(std::uint8_t* buffer, std::size_t bytes, Each&& each) {
  CUpti_Activity* record = nullptr;
  // An invalid kind marks the end of what a forced flush found half written.
  while (bytes != 0 && cupti().next_record.result(buffer, bytes, &record) == CUPTI_SUCCESS) each(*record);
}

/// Memory that CUPTI writes its records to; full buffers are kept, and read when all is over, so that the measurement
/// is disturbed the least. Thread-safe.
class RecordBuffers {
 public:
  using Buffer = std::unique_ptr<std::uint8_t[]>;
  struct Full {
    Buffer buffer;
    std::size_t bytes;
  };
  // CUPTI's threads have a buffer each, so one shouldn't be a large part of all; and it asks for 1 to 10 MB.
  static constexpr std::size_t kBytes = 1 << 20;

  explicit RecordBuffers(std::size_t most_bytes) : most_(std::max<std::size_t>(1, most_bytes / kBytes)) {
    for (std::size_t i = 0; i < most_; ++i) free_.push_back(make());
  }

  /// nullptr when too many are under way. CUPTI before 12.9 may crash then, so this doesn't happen at the mere end of
  /// what is kept: buffers beyond that are counted and used again.
  Buffer take() {
    const std::lock_guard lock(mutex_);
    if (out_ == most_ + kMostOut) return nullptr;
    ++out_;
    if (free_.empty()) return make();
    Buffer buffer = std::move(free_.back());
    free_.pop_back();
    return buffer;
  }
  void give_back(Buffer buffer, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    --out_;
    if (keep_ && full_.size() < most_) {
      full_.push_back({std::move(buffer), bytes});
      return;
    }
    if (keep_) for_records(buffer.get(), bytes, [&](const CUpti_Activity&) { ++dropped_; });
    reuse(std::move(buffer));
  }

  void keep() {
    const std::lock_guard lock(mutex_);
    keep_ = true;
    dropped_ = 0;
  }
  /// What was kept, and how many records were not.
  std::pair<std::vector<Full>, std::uint64_t> stop_keeping() {
    const std::lock_guard lock(mutex_);
    keep_ = false;
    return {std::exchange(full_, {}), dropped_};
  }
  void put_back(std::vector<Full> read) {
    const std::lock_guard lock(mutex_);
    for (auto& [buffer, bytes] : read) reuse(std::move(buffer));
  }

 private:
  static constexpr std::size_t kMostOut = 256;
  // Zeroed: CUPTI would do it in the thread that asks, and its pages would come only then.
  static Buffer make() { return std::make_unique<std::uint8_t[]>(kBytes); }
  void reuse(Buffer buffer) {
    if (free_.size() >= most_) return;
    std::memset(buffer.get(), 0, kBytes);
    free_.push_back(std::move(buffer));
  }

  const std::size_t most_;
  std::mutex mutex_;
  bool keep_ = false;
  std::uint64_t dropped_ = 0;
  std::size_t out_ = 0;
  std::vector<Buffer> free_;
  std::vector<Full> full_;
};

// CUPTI's callbacks are plain functions of the process and are told nothing of who registered them, so here is the one
// place that knows the recorder in use. Buffers outlive it: CUPTI owns those that it has.
std::mutex in_use_mutex;
RecordBuffers* in_use = nullptr;

/// The recorder in use, while it lives.
class InUse {
 public:
  explicit InUse(RecordBuffers& buffers) {
    const std::lock_guard lock(in_use_mutex);
    if (in_use != nullptr) throw Failure("CUPTI serves one recorder at a time, and there is one already");
    in_use = &buffers;
  }
  ~InUse() {
    const std::lock_guard lock(in_use_mutex);
    in_use = nullptr;
  }
  InUse(const InUse&) = delete;
  InUse& operator=(const InUse&) = delete;
};

void CUPTIAPI buffer_requested(std::uint8_t** buffer, std::size_t* size, std::size_t* most_records) {
  const std::lock_guard lock(in_use_mutex);
  *buffer = in_use == nullptr ? nullptr : in_use->take().release();
  *size = *buffer == nullptr ? 0 : RecordBuffers::kBytes;
  *most_records = 0;  // as many as fit
}

void CUPTIAPI buffer_completed(CUcontext, std::uint32_t, std::uint8_t* data, std::size_t, std::size_t bytes) {
  RecordBuffers::Buffer buffer(data);
  const std::lock_guard lock(in_use_mutex);
  if (in_use != nullptr && buffer != nullptr) in_use->give_back(std::move(buffer), bytes);
}

std::uint64_t CUPTIAPI host_clock() { return now_ns(); }

template <class Value>
void set_attribute(CUpti_ActivityAttribute attribute, Value value) {
  std::size_t size = sizeof value;
  cupti().set_attribute(attribute, &size, &value);
}

/// CUPTI keeps the GPU's times in buffers on the device, makes three of them with the context, and others when these
/// are full, in whatever thread launches then. That allocation would wait for a resident kernel. So all are made with
/// the context: together they hold more than is kept on the host, even if none became free again because a resident
/// kernel's record holds it. Their number must be below the limit, which stops CUPTI from making a second one more.
void reserve_device_memory() {
  constexpr std::size_t kBuffers = 16, kBytes = 3'200'000, kOperations = kBytes / 32;  // as CUPTI's header gives it
  static_assert(kBuffers * kOperations >= kRecordBytes / sizeof(CUpti_ActivityMemcpy5));
  set_attribute(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE, kBytes);
  set_attribute(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_POOL_LIMIT, kBuffers + 1);
  set_attribute(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_PRE_ALLOCATE_VALUE, kBuffers);
}

/// CUDA calls that give the GPU work, by their callbacks' ids. Only these are traced: threads that poll events make
/// millions of calls. What the runtime calls of the driver is left out, since it would be told twice.
using Calls = std::map<CUpti_CallbackId, std::string>;

/// "cudaMemcpyAsync" of "cudaMemcpyAsync_ptsz_v7000".
std::string plain_name(std::string_view name) {
  name.remove_prefix(std::min(name.find_first_not_of('_'), name.size()));
  return std::string(name.substr(0, name.find('_')));
}

template <std::size_t n>
Calls calls_of(CUpti_CallbackDomain domain, CUpti_CallbackId ids, const std::array<std::string_view, n>& beginnings) {
  Calls calls;
  for (CUpti_CallbackId id = 1; id < ids; ++id) {
    const char* name = nullptr;
    if (cupti().callback_name.result(domain, id, &name) != CUPTI_SUCCESS || name == nullptr) continue;
    const std::string plain = plain_name(name);
    const auto begins = [&](std::string_view beginning) { return plain.starts_with(beginning); };
    if (std::any_of(beginnings.begin(), beginnings.end(), begins)) calls[id] = plain;
  }
  return calls;
}

Calls runtime_calls() {
  return calls_of(
      CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_SIZE,
      std::array<std::string_view, 5>{"cudaLaunch", "cudaMemcpy", "cudaMemset", "cudaEventRecord", "cudaGraphLaunch"});
}

Calls driver_calls() {
  return calls_of(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_SIZE,
                  std::array<std::string_view, 1>{"cuStreamWriteValue"});
}

/// What CUPTI traces, while this lives.
class Tracing {
 public:
  Tracing(const Calls& runtime, const Calls& driver) {
    try {
      for (const auto kind : {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
                              CUPTI_ACTIVITY_KIND_MEMCPY2, CUPTI_ACTIVITY_KIND_MEMSET, CUPTI_ACTIVITY_KIND_MARKER}) {
        cupti().enable(kind);
        kinds_.push_back(kind);
      }
      for (const auto& [id, name] : runtime) {
        cupti().enable_runtime(id, 1);
        runtime_.push_back(id);
      }
      for (const auto& [id, name] : driver) {
        cupti().enable_driver(id, 1);
        driver_.push_back(id);
      }
    } catch (...) {
      stop();
      throw;
    }
  }
  ~Tracing() { stop(); }
  Tracing(const Tracing&) = delete;
  Tracing& operator=(const Tracing&) = delete;

 private:
  void stop() {
    for (const auto id : driver_) cupti().enable_driver.result(id, 0);
    for (const auto id : runtime_) cupti().enable_runtime.result(id, 0);
    for (const auto kind : kinds_) cupti().disable.result(kind);
    cupti().flush.result(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);  // returns our buffers
  }
  std::vector<CUpti_ActivityKind> kinds_;
  std::vector<CUpti_CallbackId> runtime_, driver_;
};

Activity::Kind copy_kind(std::uint8_t kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOD:
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOA:
      return Activity::Kind::to_device;
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOH:
    case CUPTI_ACTIVITY_MEMCPY_KIND_ATOH:
      return Activity::Kind::to_host;
    default:
      return Activity::Kind::other_copy;
  }
}

std::string demangled(const char* name) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> plain(abi::__cxa_demangle(name, nullptr, nullptr, &status),
                                                          &std::free);
  return plain ? plain.get() : name;
}

/// Makes activities of CUPTI's records.
class Reader {
 public:
  Reader(const Calls& runtime, const Calls& driver, std::uint64_t since_ns)
      : runtime_(runtime), driver_(driver), since_ns_(since_ns) {}

  void read(const CUpti_Activity& record) {
    switch (record.kind) {
      case CUPTI_ACTIVITY_KIND_KERNEL:
      case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
        return kernel(as<CUpti_ActivityKernel9>(record));
      case CUPTI_ACTIVITY_KIND_MEMCPY:
        return copy(as<CUpti_ActivityMemcpy5>(record));
      case CUPTI_ACTIVITY_KIND_MEMCPY2:
        return peer_copy(as<CUpti_ActivityMemcpyPtoP4>(record));
      case CUPTI_ACTIVITY_KIND_MEMSET:
        return memset(as<CUpti_ActivityMemset4>(record));
      case CUPTI_ACTIVITY_KIND_RUNTIME:
        return call(as<CUpti_ActivityAPI>(record), runtime_);
      case CUPTI_ACTIVITY_KIND_DRIVER:
        return call(as<CUpti_ActivityAPI>(record), driver_);
      case CUPTI_ACTIVITY_KIND_MARKER:
        return marker(as<CUpti_ActivityMarker2>(record));
      default:
        return;
    }
  }

  /// Ranges that are still open are taken to end at `now_ns`.
  Recording finish(std::uint64_t now_ns) {
    for (auto& [id, range] : ranges_) {
      const auto end = range_ends_.find(id);
      range.end_ns = end == range_ends_.end() ? now_ns : end->second;
      add(std::move(range));
    }
    std::stable_sort(recording_.activities.begin(), recording_.activities.end(),
                     [](const Activity& a, const Activity& b) { return a.begin_ns < b.begin_ns; });
    return std::move(recording_);
  }

 private:
  template <class Record>
  static const Record& as(const CUpti_Activity& record) {
    return reinterpret_cast<const Record&>(record);
  }
  void add(Activity activity) {
    if (activity.end_ns > since_ns_) recording_.activities.push_back(std::move(activity));
  }
  void add_timed(Activity activity) {
    if (activity.begin_ns == 0 || activity.end_ns == 0) {
      ++recording_.untimed;
    } else {
      add(std::move(activity));
    }
  }

  void kernel(const CUpti_ActivityKernel9& record) {
    // CUPTI has one text for all launches of a kernel.
    std::string& name = kernel_names_[record.name];
    if (name.empty()) name = record.name == nullptr ? "kernel" : demangled(record.name);
    add_timed({.kind = Activity::Kind::kernel,
               .name = name,
               .begin_ns = record.start,
               .end_ns = record.end,
               .stream = record.streamId,
               .correlation = record.correlationId});
  }
  void copy(const CUpti_ActivityMemcpy5& record) {
    // The driver's correlation differs from the runtime's, where the runtime was called.
    const std::uint32_t runtime = record.runtimeCorrelationId;
    add_copy(record.copyKind, record, runtime != 0 ? runtime : record.correlationId);
  }
  void peer_copy(const CUpti_ActivityMemcpyPtoP4& record) { add_copy(record.copyKind, record, record.correlationId); }
  template <class Record>
  void add_copy(std::uint8_t copied, const Record& record, std::uint32_t correlation) {
    const Activity::Kind kind = copy_kind(copied);
    add_timed({.kind = kind,
               .name = kind == Activity::Kind::to_device ? "copy to device"
                       : kind == Activity::Kind::to_host ? "copy to host"
                                                         : "copy",
               .begin_ns = record.start,
               .end_ns = record.end,
               .stream = record.streamId,
               .correlation = correlation,
               .bytes = record.bytes});
  }
  void memset(const CUpti_ActivityMemset4& record) {
    add_timed({.kind = Activity::Kind::memset,
               .name = "memset",
               .begin_ns = record.start,
               .end_ns = record.end,
               .stream = record.streamId,
               .correlation = record.correlationId,
               .bytes = record.bytes});
  }
  void call(const CUpti_ActivityAPI& record, const Calls& calls) {
    const auto found = calls.find(record.cbid);
    if (found == calls.end() || record.start == 0) return;
    add({.kind = Activity::Kind::api,
         .name = found->second,
         .begin_ns = record.start,
         .end_ns = record.end,
         .thread = record.threadId,
         .correlation = record.correlationId});
  }
  // A range's begin and end are records of their own, and may come in any order where they are of two threads.
  void marker(const CUpti_ActivityMarker2& record) {
    if (record.flags & CUPTI_ACTIVITY_FLAG_MARKER_END) {
      range_ends_[record.id] = record.timestamp;
      return;
    }
    if ((record.flags & (CUPTI_ACTIVITY_FLAG_MARKER_START | CUPTI_ACTIVITY_FLAG_MARKER_INSTANTANEOUS)) == 0) return;
    const bool in_thread = record.objectKind == CUPTI_ACTIVITY_OBJECT_THREAD;
    Activity range{.kind = Activity::Kind::range,
                   .name = record.name == nullptr ? "" : record.name,
                   .begin_ns = record.timestamp,
                   .end_ns = record.timestamp,
                   .thread = in_thread ? record.objectId.pt.threadId : 0};
    if (record.flags & CUPTI_ACTIVITY_FLAG_MARKER_INSTANTANEOUS) {
      add(std::move(range));
    } else {
      ranges_[record.id] = std::move(range);
    }
  }

  const Calls &runtime_, &driver_;
  std::uint64_t since_ns_;
  Recording recording_;
  std::unordered_map<const char*, std::string> kernel_names_;
  std::unordered_map<std::uint32_t, Activity> ranges_;
  std::unordered_map<std::uint32_t, std::uint64_t> range_ends_;
};

class CuptiRecorder final : public ActivityRecorder {
 public:
  explicit CuptiRecorder(std::size_t most_bytes) : buffers_(most_bytes), in_use_(buffers_) {
    cupti().thread_ids(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
    // Before any kind is enabled, so that all records have the host's clock: those of calls take it at once, and the
    // GPU's times are converted to it later, between pairs of both clocks.
    cupti().clock(&host_clock);
    set_attribute(CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER, std::uint8_t{1});
    reserve_device_memory();
    cupti().callbacks(&buffer_requested, &buffer_completed);
    // To the recorder's end: what is enabled or disabled while a resident kernel runs may wait for it.
    tracing_ = std::make_unique<Tracing>(runtime_, driver_);
  }

  void begin() override {
    // Earlier records that are complete go now, and make room. Those that are not come to `end`, which knows their
    // time.
    cupti().flush(0);
    count_dropped();
    buffers_.keep();
    since_ns_ = now_ns();
  }

  Recording end() override {
    const std::uint64_t end_ns = now_ns();
    // The first flush returns buffers whose records are all complete, the second the others too.
    cupti().flush(0);
    cupti().flush(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    auto [full, dropped] = buffers_.stop_keeping();
    Reader reader(runtime_, driver_, since_ns_);
    for (const auto& [buffer, bytes] : full) {
      for_records(buffer.get(), bytes, [&](const CUpti_Activity& record) { reader.read(record); });
    }
    Recording recording = reader.finish(end_ns);
    recording.dropped = dropped + count_dropped();
    buffers_.put_back(std::move(full));
    return recording;
  }

 private:
  /// Since the last time.
  static std::uint64_t count_dropped() {
    std::size_t dropped = 0;
    cupti().dropped(nullptr, 0, &dropped);
    return dropped;
  }

  const Calls runtime_ = runtime_calls(), driver_ = driver_calls();
  RecordBuffers buffers_;
  InUse in_use_;
  std::unique_ptr<Tracing> tracing_;  // ends first
  std::uint64_t since_ns_ = 0;
};

}  // namespace

std::string cupti_unavailable() { return cupti().unavailable(); }

void prepare_ranges() {
  link_map* loaded = nullptr;
  if (!cupti_unavailable().empty() || dlinfo(cupti().library, RTLD_DI_LINKMAP, &loaded) != 0) return;
  setenv("NVTX_INJECTION64_PATH", loaded->l_name, 0);
}

std::unique_ptr<ActivityRecorder> open_activity_recorder(std::size_t most_bytes) {
  if (const auto reason = cupti_unavailable(); !reason.empty()) throw Failure(reason);
  return std::make_unique<CuptiRecorder>(most_bytes);
}

}  // namespace feedrate

#endif
