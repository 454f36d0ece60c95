#pragma once
#include <string>
#include <utility>

#include "common/error.hpp"
#include "common/export.hpp"

/// The errors of a store. Each has a code for clients in any language and a message that gives the tensor and the
/// reason. An invalid request is a BadInput, with the code `bad_request`.
namespace feedrate::tensors {

struct FEEDRATE_EXPORT StoreError : Failure {
  StoreError(std::string kind, const std::string& text) : Failure(text), code(std::move(kind)) {}
  std::string code;
};

/// No tensor has that name, or the name no longer belongs to that generation.
struct FEEDRATE_EXPORT NotFound : StoreError {
  explicit NotFound(const std::string& text) : StoreError("not_found", text) {}
};
struct FEEDRATE_EXPORT AlreadyExists : StoreError {
  explicit AlreadyExists(const std::string& text) : StoreError("exists", text) {}
};
/// The device's memory, the daemon's limit or the client's quota is exhausted; the message lists the holders.
struct FEEDRATE_EXPORT OutOfMemory : StoreError {
  explicit OutOfMemory(const std::string& text) : StoreError("out_of_memory", text) {}
};
/// More connections, tensors or leases than the daemon allows.
struct FEEDRATE_EXPORT LimitReached : StoreError {
  explicit LimitReached(const std::string& text) : StoreError("limit", text) {}
};
struct FEEDRATE_EXPORT TimedOut : StoreError {
  explicit TimedOut(const std::string& text) : StoreError("timeout", text) {}
};
/// The daemon is gone or does not answer.
struct FEEDRATE_EXPORT Unreachable : StoreError {
  explicit Unreachable(const std::string& text) : StoreError("unreachable", text) {}
};

}  // namespace feedrate::tensors
