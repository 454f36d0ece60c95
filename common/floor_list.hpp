#pragma once
#include <functional>
#include <string>
#include <vector>

namespace feedrate {

/// One thing that this machine can't do better, measured bare: no queue, no headers, no bookkeeping.
struct Floor {
  std::string name;  ///< ends in its unit: _ns (median), _bytes_per_second (each way), _per_second
  double value = 0;
  std::string unit;
  std::string description;
  std::string started;
  double seconds = 0;
};

/// Collects floors, timing how long each took to measure.
class FloorList {
 public:
  /// `measured` false: floors are only named, for the catalogue.
  explicit FloorList(bool measured = true) : measured_(measured) {}
  /// A floor of a name that is there already is not measured again; one that fails is left out, with a warning.
  void add(std::string name, std::string unit, std::string description, const std::function<double()>& measure);
  std::vector<Floor> take() { return std::move(floors_); }

 private:
  bool measured_;
  std::vector<Floor> floors_;
};

/// The median of `n` timings of `body`, after a tenth as many untimed, in nanoseconds.
double median_ns(unsigned n, const std::function<void()>& body);
/// How often `body` runs in a second, measured over at least `seconds`.
double per_second(double seconds, const std::function<void()>& body);

}  // namespace feedrate
