#pragma once
#include <cstddef>
#include <string>
#include <vector>

namespace feedrate {

/// Several values, each with a share: "64:0.9,4Ki:0.1". Or sizes of a lognormal distribution, "lognormal:MEDIAN:SIGMA",
/// cut off at a most and rounded up to whole 16 bytes, so that any workload can take them.
class Mix {
 public:
  struct Part {
    std::size_t value;
    double up_to;  ///< the shares of this and all earlier parts together; the last is 1
  };
  explicit Mix(std::vector<Part> parts) : parts_(std::move(parts)) {}
  Mix(double median, double sigma, std::size_t most) : median_(median), sigma_(sigma), most_(most) {}

  /// One value. `uniform()` gives numbers in (0, 1].
  template <class Uniform>
  std::size_t draw(Uniform& uniform) const {
    if (parts_.empty()) {
      const double first = uniform();
      return lognormal(first, uniform());
    }
    return pick(uniform());
  }
  /// All that can be drawn; of a lognormal distribution the smallest and the largest.
  std::vector<std::size_t> values() const;

 private:
  std::size_t pick(double u) const;
  std::size_t lognormal(double u1, double u2) const;

  std::vector<Part> parts_;
  double median_ = 0, sigma_ = 0;
  std::size_t most_ = 0;
};

/// Throws BadInput naming the option, the value and what is allowed. `most`: where a lognormal distribution is cut off.
Mix parse_payload_mix(const std::string& text, std::size_t most);
/// Values are priorities, 0 (the highest) to 7.
Mix parse_priority_mix(const std::string& text);

}  // namespace feedrate
