#pragma once
#include <cstdint>
#include <string>

namespace feedrate {

/// Warnings that a stranger can cause without end: ten a minute are printed, the others are counted and told with the
/// next. Used by one thread.
class LimitedWarnings {
 public:
  void warn(const std::string& text);

 private:
  std::uint64_t window_begin_ns_ = 0;
  unsigned printed_ = 0, hidden_ = 0;  // in this window
};

}  // namespace feedrate
