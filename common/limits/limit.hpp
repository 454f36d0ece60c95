#pragma once
#include <map>
#include <string>
#include <vector>

namespace feedrate {

enum class Quantity { nanoseconds, bytes_per_second, operations_per_second };

/// The unit's text in rows: "ns", "bytes/s" or "1/s".
inline const char* text_of(Quantity quantity) {
  switch (quantity) {
    case Quantity::nanoseconds:
      return "ns";
    case Quantity::bytes_per_second:
      return "bytes/s";
    default:
      return "1/s";
  }
}

/// The part of the machine to which a limit applies.
struct Scope {
  std::string of = "host";  ///< host, gpu, link, path or service
  std::string which = {};   ///< the GPU's index, the link's two ends, the folder or device file, or the service's name
  bool operator==(const Scope&) const = default;
};
inline Scope gpu_scope(unsigned index) { return {"gpu", std::to_string(index)}; }
/// Scope of the link between the host and a GPU.
inline Scope bus_scope(unsigned gpu) { return {"link", "host gpu" + std::to_string(gpu)}; }
inline Scope peer_scope(unsigned from, unsigned to) {
  return {"link", "gpu" + std::to_string(from) + " gpu" + std::to_string(to)};
}
inline Scope service_scope(std::string name) { return {"service", std::move(name)}; }

/// A time or rate that this machine cannot improve on, measured bare: without queue, headers or bookkeeping. A time is
/// a floor; a rate is a ceiling.
struct Limit {
  std::string name;  ///< ends in _ns, _bytes_per_second or _per_second
  Quantity quantity = Quantity::nanoseconds;
  Scope scope = {};
  std::string method = {};         ///< how it is measured
  std::string started = {};        ///< when the first reading began
  double seconds = 0;              ///< total time of all readings
  std::vector<double> readings{};  ///< in order of measurement

  double median() const;
  double least() const;
  double greatest() const;
};

/// Measured limits by name: the medians of their readings, in each limit's unit.
using Limits = std::map<std::string, double>;

}  // namespace feedrate
