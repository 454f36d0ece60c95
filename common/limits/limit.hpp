#pragma once
#include <map>
#include <string>
#include <vector>

namespace feedrate {

enum class Quantity { nanoseconds, bytes_per_second, operations_per_second };

/// As in rows: "ns", "bytes/s", "1/s".
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

/// Where a limit holds.
struct Scope {
  std::string of = "host";  ///< host, gpu, link, path or service
  std::string which = {};   ///< a GPU's index; a link's two ends; a folder or device file; a service's name
  bool operator==(const Scope&) const = default;
};
inline Scope gpu_scope(unsigned index) { return {"gpu", std::to_string(index)}; }
/// Between the host and a GPU.
inline Scope bus_scope(unsigned gpu) { return {"link", "host gpu" + std::to_string(gpu)}; }
inline Scope peer_scope(unsigned from, unsigned to) {
  return {"link", "gpu" + std::to_string(from) + " gpu" + std::to_string(to)};
}
inline Scope service_scope(std::string name) { return {"service", std::move(name)}; }

/// Something that this machine can't exceed, measured bare: no queue, no headers, no bookkeeping. A time is a floor, a
/// rate is a ceiling.
struct Limit {
  std::string name;  ///< ends in _ns, _bytes_per_second or _per_second
  Quantity quantity = Quantity::nanoseconds;
  Scope scope = {};
  std::string method = {};         ///< how it is measured
  std::string started = {};        ///< when the first reading began
  double seconds = 0;              ///< that all readings took
  std::vector<double> readings{};  ///< in the order in which they were made

  double median() const;
  double least() const;
  double greatest() const;
};

/// Limits that were measured, by name: the medians of their readings, in the limit's unit.
using Limits = std::map<std::string, double>;

}  // namespace feedrate
