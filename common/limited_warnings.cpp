#include "common/limited_warnings.hpp"

#include <spdlog/spdlog.h>

#include "common/clock.hpp"

namespace feedrate {
namespace {

constexpr unsigned kMaxPrinted = 10;
constexpr std::uint64_t kWindowNs = 60'000'000'000;

}  // namespace

void LimitedWarnings::warn(const std::string& text) {
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

}  // namespace feedrate
