#include "experiments/harness/timeline/cupti.hpp"

#include "common/error.hpp"
#include "features.hpp"

#ifndef FEEDRATE_CUPTI

namespace feedrate {

std::string cupti_unavailable() { return "built without CUPTI's header"; }
void prepare_ranges() {}
std::unique_ptr<ActivityRecorder> open_activity_recorder(std::size_t) { throw Failure(cupti_unavailable()); }

}  // namespace feedrate

#else

#include <link.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <functional>
#include <initializer_list>
#include <string_view>

#include "common/clock.hpp"
#include "experiments/harness/timeline/cupti/buffers.hpp"
#include "experiments/harness/timeline/cupti/reader.hpp"

namespace feedrate {
namespace {

/// Search order: the loader's own paths, a bundle's folder, then the folders of CUDA's packages. The header's version
/// is first. Only record members that exist in all versions are read.
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

// CUPTI's callbacks are plain functions without a context argument, so this global variable refers to the recorder in
// use. Buffers may outlive the recorder: CUPTI owns the buffers that it holds.
std::mutex in_use_mutex;
RecordBuffers* in_use = nullptr;

/// Registers the recorder in use for as long as this object lives.
class InUse {
 public:
  explicit InUse(RecordBuffers& buffers) {
    const std::lock_guard lock(in_use_mutex);
    if (in_use != nullptr) throw Failure("CUPTI serves one recorder at a time, and another recorder exists");
    in_use = &buffers;
  }
  ~InUse() {
    const std::lock_guard lock(in_use_mutex);
    in_use = nullptr;
  }
  InUse(const InUse&) = delete;
  InUse& operator=(const InUse&) = delete;
};

void CUPTIAPI buffer_requested(std::uint8_t** buffer, std::size_t* size, std::size_t* max_records) {
  const std::lock_guard lock(in_use_mutex);
  *buffer = in_use == nullptr ? nullptr : in_use->take().release();
  *size = *buffer == nullptr ? 0 : RecordBuffers::kBytes;
  *max_records = 0;  // as many as fit
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

/// CUPTI keeps GPU timestamps in device buffers. It allocates three with the context, and further ones when those are
/// full, in whichever thread is launching at that time. Such an allocation would wait for a resident kernel, so all
/// buffers are allocated with the context. Together they hold more records than are kept on the host, even if a
/// resident kernel's record prevents every buffer from becoming free again. Their number must be below the pool limit,
/// which prevents CUPTI from allocating more than one additional buffer.
void reserve_device_memory() {
  constexpr std::size_t kBuffers = 16, kBytes = 3'200'000,
                        kOperations = kBytes / 32;  // bytes per operation from CUPTI's header
  static_assert(kBuffers * kOperations >= kRecordBytes / sizeof(CUpti_ActivityMemcpy5));
  set_attribute(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE, kBytes);
  set_attribute(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_POOL_LIMIT, kBuffers + 1);
  set_attribute(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_PRE_ALLOCATE_VALUE, kBuffers);
}

/// Name without suffixes: "cudaMemcpyAsync" for "cudaMemcpyAsync_ptsz_v7000".
std::string plain_name(std::string_view name) {
  name.remove_prefix(std::min(name.find_first_not_of('_'), name.size()));
  return std::string(name.substr(0, name.find('_')));
}

/// The calls whose names begin with one of `beginnings`.
Calls calls_of(CUpti_CallbackDomain domain, CUpti_CallbackId ids, std::initializer_list<std::string_view> beginnings) {
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

/// Enables CUPTI's tracing for as long as this object lives.
class Tracing {
 public:
  /// Delegates, so that the destructor also runs if enabling fails halfway.
  Tracing(const Calls& runtime, const Calls& driver) : Tracing() {
    for (const auto kind : {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
                            CUPTI_ACTIVITY_KIND_MEMCPY2, CUPTI_ACTIVITY_KIND_MEMSET, CUPTI_ACTIVITY_KIND_MARKER}) {
      cupti().enable(kind);
      undo_.emplace_back([kind] { cupti().disable.result(kind); });
    }
    for (const auto& [calls, enable] :
         {std::pair{&runtime, &cupti().enable_runtime}, {&driver, &cupti().enable_driver}}) {
      for (const auto& [id, name] : *calls) {
        (*enable)(id, 1);
        undo_.emplace_back([enable, id] { enable->result(id, 0); });
      }
    }
  }
  ~Tracing() {
    for (auto undo = undo_.rbegin(); undo != undo_.rend(); ++undo) (*undo)();
    cupti().flush.result(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);  // returns the recorder's buffers
  }
  Tracing(const Tracing&) = delete;
  Tracing& operator=(const Tracing&) = delete;

 private:
  Tracing() = default;
  std::vector<std::function<void()> > undo_;
};

class CuptiRecorder final : public ActivityRecorder {
 public:
  explicit CuptiRecorder(std::size_t max_bytes) : buffers_(max_bytes), in_use_(buffers_) {
    cupti().thread_ids(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
    // Set before any kind is enabled, so that all records use the host's clock: records of calls read it directly, and
    // GPU times are converted to it later, by interpolation between pairs of readings of both clocks.
    cupti().clock(&host_clock);
    set_attribute(CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER, std::uint8_t{1});
    reserve_device_memory();
    cupti().callbacks(&buffer_requested, &buffer_completed);
    // Enabled for the recorder's lifetime, because enabling or disabling may wait for a resident kernel.
    tracing_ = std::make_unique<Tracing>(runtime_, driver_);
  }

  void begin() override {
    // Flush earlier complete records to make room. Incomplete ones arrive in `end`, which filters them by time.
    cupti().flush(0);
    count_dropped();
    buffers_.keep();
    since_ns_ = now_ns();
  }

  Recording end() override {
    const std::uint64_t end_ns = now_ns();
    // The first flush returns buffers with only complete records, the second flush returns the others.
    cupti().flush(0);
    cupti().flush(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    auto [full, dropped] = buffers_.stop_keeping();
    RecordReader reader(runtime_, driver_, since_ns_);
    for (const auto& [buffer, bytes] : full) {
      for_records(buffer.get(), bytes, [&](const CUpti_Activity& record) { reader.read(record); });
    }
    Recording recording = reader.finish(end_ns);
    recording.dropped = dropped + count_dropped();
    buffers_.put_back(std::move(full));
    return recording;
  }

 private:
  /// Number of records dropped since the last call.
  static std::uint64_t count_dropped() {
    std::size_t dropped = 0;
    cupti().dropped(nullptr, 0, &dropped);
    return dropped;
  }

  const Calls runtime_ = calls_of(CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_SIZE,
                                  {"cudaLaunch", "cudaMemcpy", "cudaMemset", "cudaEventRecord", "cudaGraphLaunch"});
  const Calls driver_ = calls_of(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_SIZE, {"cuStreamWriteValue"});
  RecordBuffers buffers_;
  InUse in_use_;
  std::unique_ptr<Tracing> tracing_;  // destroyed first
  std::uint64_t since_ns_ = 0;
};

}  // namespace

void* open_cupti_library() {
  for (const char* place : kPlaces) {
    // CUPTI has its own threads and handlers, so it is never unloaded.
    if (void* library = dlopen(place, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE)) return library;
  }
  return nullptr;
}

std::string Cupti::unavailable() const {
  if (library == nullptr) return fmt::format("CUPTI is missing: found neither {} nor another version", kPlaces[0]);
  std::string reason;
  const auto need = [&](const auto& function) {
    if (!function.there()) reason = fmt::format("this CUPTI is too old: it has no {}", function.name());
  };
  const auto need_all = [&](const auto&... functions) { (need(functions), ...); };
  need_all(enable, disable, enable_runtime, enable_driver, flush, next_record, dropped, callbacks, clock, set_attribute,
           callback_name, result_string, thread_ids);
  return reason;
}

const Cupti& cupti() {
  static const Cupti library;
  return library;
}

std::string cupti_unavailable() { return cupti().unavailable(); }

void prepare_ranges() {
  link_map* loaded = nullptr;
  if (!cupti_unavailable().empty() || dlinfo(cupti().library, RTLD_DI_LINKMAP, &loaded) != 0) return;
  setenv("NVTX_INJECTION64_PATH", loaded->l_name, 0);
}

std::unique_ptr<ActivityRecorder> open_activity_recorder(std::size_t max_bytes) {
  if (const auto reason = cupti_unavailable(); !reason.empty()) throw Failure(reason);
  return std::make_unique<CuptiRecorder>(max_bytes);
}

}  // namespace feedrate

#endif
