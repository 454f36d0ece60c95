#pragma once
#include <stdexcept>
#include <string>

#include "common/export.hpp"

namespace feedrate {

/// Invalid input from the caller: names the option, its value and the allowed values. The executable prints the message
/// and exits with code 2 before anything has run.
class FEEDRATE_EXPORT BadInput : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  BadInput(const std::string& option, const std::string& value, const std::string& allowed)
      : std::runtime_error(option + ": invalid value '" + value + "'; allowed: " + allowed), option_(option) {}
  /// The option that the message begins with; empty if it names none.
  const std::string& option() const { return option_; }
  /// Returns the same error for a value from `source` (such as a spec's key) instead of the option.
  BadInput from(const std::string& source) const {
    return option_.empty() ? *this : BadInput(source + std::string(what()).substr(option_.size()));
  }

 private:
  std::string option_;
};

/// A failure at run time (CUDA, Redis, the system). In a sweep it becomes a `failed` row.
struct FEEDRATE_EXPORT Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A lost service, or an error reply from it.
struct FEEDRATE_EXPORT ServiceFailure : Failure {
  using Failure::Failure;
  /// Whether the cause is the connection or the state of the service (full, a replica, changed permissions) rather than
  /// the request, such as a particular task. If so, a later attempt or another connection may succeed.
  bool of_the_service = true;
};

}  // namespace feedrate
