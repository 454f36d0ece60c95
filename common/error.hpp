#pragma once
#include <stdexcept>
#include <string>

#include "common/export.hpp"

namespace feedrate {

/// The caller asked for something that cannot be: names the option, its value and what is allowed.
/// The executable prints it and exits with code 2, before anything has run.
class FEEDRATE_EXPORT BadInput : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  BadInput(const std::string& option, const std::string& value, const std::string& allowed)
      : std::runtime_error(option + ": '" + value + "' is not possible; allowed: " + allowed), option_(option) {}
  /// What the message begins with, where it names an option; else empty.
  const std::string& option() const { return option_; }
  /// The same of a value that came from `source` (a spec's key, say) and not from an option that somebody gave.
  BadInput from(const std::string& source) const {
    return option_.empty() ? *this : BadInput(source + std::string(what()).substr(option_.size()));
  }

 private:
  std::string option_;
};

/// Something broke while running (CUDA, Redis, the system). Inside a sweep it becomes a `failed` row.
struct FEEDRATE_EXPORT Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace feedrate
