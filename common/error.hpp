#pragma once
#include <stdexcept>
#include <string>

namespace feedrate {

/// The caller asked for something that cannot be: names the option, its value and what is allowed.
/// The executable prints it and exits with code 2, before anything has run.
struct BadInput : std::runtime_error {
  using std::runtime_error::runtime_error;
  BadInput(const std::string& option, const std::string& value, const std::string& allowed)
      : std::runtime_error(option + ": '" + value + "' is not possible; allowed: " + allowed) {}
};

/// Something broke while running (CUDA, Redis, the system). Inside a sweep it becomes a `failed` row.
struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace feedrate
