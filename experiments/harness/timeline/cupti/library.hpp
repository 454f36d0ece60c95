#pragma once
#include <cupti.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <string>

#include "common/error.hpp"

/// CUPTI's library, loaded on first use. Built only if its header is available.
namespace feedrate {

template <class Signature>
class Function;
/// A function of the library, with the type that the header declares. A call throws Failure if the function fails.
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

/// Returns nullptr if there is none.
void* open_cupti_library();

/// The functions of the library that are used here.
struct Cupti {
  void* library = open_cupti_library();
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

  /// Reason why the library cannot be used; empty if it can.
  std::string unavailable() const;
};

/// Loaded once, on first use: it cannot be unloaded safely, and NVTX does not load it twice.
const Cupti& cupti();

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
  // An invalid kind marks the end of the valid records in a buffer that a forced flush returned half written.
  while (bytes != 0 && cupti().next_record.result(buffer, bytes, &record) == CUPTI_SUCCESS) each(*record);
}

}  // namespace feedrate
