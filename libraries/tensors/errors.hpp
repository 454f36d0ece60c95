#pragma once
#include <string>
#include <utility>

#include "common/error.hpp"
#include "common/export.hpp"

/// What a store answers instead of a tensor. Each has a code that clients in any language read, and a text that names
/// the tensor and says why. A request that can't be is a BadInput, whose code is `bad_request`.
namespace feedrate::tensors {

struct FEEDRATE_EXPORT StoreError : Failure {
  StoreError(std::string kind, const std::string& text) : Failure(text), code(std::move(kind)) {}
  std::string code;
};

/// There is no tensor of that name, or not any more of that generation.
struct FEEDRATE_EXPORT NotFound : StoreError {
  explicit NotFound(const std::string& text) : StoreError("not_found", text) {}
};
struct FEEDRATE_EXPORT AlreadyExists : StoreError {
  explicit AlreadyExists(const std::string& text) : StoreError("exists", text) {}
};
/// The device, the daemon's limit or the client's quota is full; the text says who holds what.
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
