#pragma once
#include <spdlog/spdlog.h>

#include <cstdint>
#include <string>

#include "common/clock.hpp"

namespace feedrate {

/// Warnings that remote peers can cause without limit. At most ten per minute are printed; the others are counted, and
/// the count is printed with the next warning. For use by one thread.
class LimitedWarnings {
 public:
  void warn(const std::string& text) {
    const std::uint64_t now = now_ns();
    if (window_begin_ns_ == 0 || now - window_begin_ns_ > kWindowNs) {
      if (hidden_ != 0) spdlog::warn("{} further warnings like these were not printed", hidden_);
      window_begin_ns_ = now;
      printed_ = hidden_ = 0;
    }
    if (printed_ == kMaxPrinted) {
      if (hidden_++ == 0) spdlog::warn("further warnings in this minute are counted but not printed");
      return;
    }
    ++printed_;
    spdlog::warn("{}", text);
  }

 private:
  static constexpr unsigned kMaxPrinted = 10;
  static constexpr std::uint64_t kWindowNs = 60'000'000'000;
  std::uint64_t window_begin_ns_ = 0;
  unsigned printed_ = 0, hidden_ = 0;  // within the current window
};

}  // namespace feedrate
