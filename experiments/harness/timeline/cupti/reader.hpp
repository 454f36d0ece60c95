#pragma once
#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <unordered_map>
#include <utility>

#include "experiments/harness/timeline/cupti.hpp"
#include "experiments/harness/timeline/cupti/library.hpp"

namespace feedrate {

/// CUDA calls that submit work to the GPU, by callback ID. Only these are traced, because threads that poll events make
/// millions of calls. Driver calls made by the runtime are left out, because they would appear twice.
using Calls = std::map<CUpti_CallbackId, std::string>;

inline std::string demangled(const char* name) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> plain(abi::__cxa_demangle(name, nullptr, nullptr, &status),
                                                          &std::free);
  return plain ? plain.get() : name;
}

/// Converts CUPTI's records to activities.
class RecordReader {
 public:
  RecordReader(const Calls& runtime, const Calls& driver, std::uint64_t since_ns)
      : runtime_(runtime), driver_(driver), since_ns_(since_ns) {}

  void read(const CUpti_Activity& record) {
    switch (record.kind) {
      case CUPTI_ACTIVITY_KIND_KERNEL:
      case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
        return kernel(as<CUpti_ActivityKernel9>(record));
      case CUPTI_ACTIVITY_KIND_MEMCPY:
        return copy(as<CUpti_ActivityMemcpy5>(record));
      case CUPTI_ACTIVITY_KIND_MEMCPY2:
        return copy(as<CUpti_ActivityMemcpyPtoP4>(record));
      case CUPTI_ACTIVITY_KIND_MEMSET: {
        const auto& memset = as<CUpti_ActivityMemset4>(record);
        return work(memset, Activity::Kind::memset, "memset", memset.bytes);
      }
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

  /// Ranges that are still open end at `now_ns`.
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
  /// Adds work on the GPU.
  template <class Record>
  void work(const Record& record, Activity::Kind kind, const std::string& name, std::uint64_t bytes = 0) {
    if (record.start == 0 || record.end == 0) {
      ++recording_.untimed;
      return;
    }
    std::uint32_t correlation = record.correlationId;
    if constexpr (requires { record.runtimeCorrelationId; }) {
      // If the runtime was called, the driver's correlation differs from the runtime's.
      if (record.runtimeCorrelationId != 0) correlation = record.runtimeCorrelationId;
    }
    add({.kind = kind,
         .name = name,
         .begin_ns = record.start,
         .end_ns = record.end,
         .stream = record.streamId,
         .correlation = correlation,
         .bytes = bytes});
  }
  void kernel(const CUpti_ActivityKernel9& record) {
    // CUPTI uses the same string pointer for all launches of a kernel.
    std::string& name = kernel_names_[record.name];
    if (name.empty()) name = record.name == nullptr ? "kernel" : demangled(record.name);
    work(record, Activity::Kind::kernel, name);
  }
  template <class Record>
  void copy(const Record& record) {
    switch (record.copyKind) {
      case CUPTI_ACTIVITY_MEMCPY_KIND_HTOD:
      case CUPTI_ACTIVITY_MEMCPY_KIND_HTOA:
        return work(record, Activity::Kind::to_device, "copy to device", record.bytes);
      case CUPTI_ACTIVITY_MEMCPY_KIND_DTOH:
      case CUPTI_ACTIVITY_MEMCPY_KIND_ATOH:
        return work(record, Activity::Kind::to_host, "copy to host", record.bytes);
      default:
        return work(record, Activity::Kind::other_copy, "copy", record.bytes);
    }
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
  // The start and the end of a range are separate records, in any order if they are from two threads.
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

}  // namespace feedrate
