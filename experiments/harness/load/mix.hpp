#pragma once
#include <cstddef>
#include <string>
#include <vector>

namespace feedrate {

/// Several values, each with a share: "64:0.9,4Ki:0.1"; or sizes with a lognormal distribution,
/// "lognormal:MEDIAN:SIGMA", limited to a maximum and rounded up to a multiple of 16 bytes, so that any workload
/// accepts them.
class Mix {
 public:
  struct Part {
    std::size_t value;
    double up_to;  ///< cumulative share of this and all earlier parts; 1 for the last part
  };
  explicit Mix(std::vector<Part> parts) : parts_(std::move(parts)) {}
  Mix(double median, double sigma, std::size_t most) : median_(median), sigma_(sigma), max_(most) {}

  /// Draws one value. `uniform()` returns numbers in (0, 1].
  template <class Uniform>
  std::size_t draw(Uniform& uniform) const {
    if (parts_.empty()) {
      const double first = uniform();
      return lognormal(first, uniform());
    }
    return pick(uniform());
  }
  /// All values that can be drawn; for a lognormal distribution, the smallest and the largest.
  std::vector<std::size_t> values() const;

 private:
  std::size_t pick(double u) const;
  std::size_t lognormal(double u1, double u2) const;

  std::vector<Part> parts_;
  double median_ = 0, sigma_ = 0;
  std::size_t max_ = 0;
};

/// Throws BadInput with the option, the value and the allowed forms. `most` is the limit of a lognormal distribution.
Mix parse_payload_mix(const std::string& text, std::size_t most);
/// Parses a mix whose values are priorities, 0 (the highest) to 7.
Mix parse_priority_mix(const std::string& text);

}  // namespace feedrate
