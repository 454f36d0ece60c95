#pragma once
#include <cstdint>
#include <string>

namespace feedrate {

/// Warnings that remote peers can cause without limit. At most ten per minute are printed; the others are counted, and
/// the count is printed with the next warning. For use by one thread.
class LimitedWarnings {
 public:
  void warn(const std::string& text);

 private:
  std::uint64_t window_begin_ns_ = 0;
  unsigned printed_ = 0, hidden_ = 0;  // within the current window
};

}  // namespace feedrate
