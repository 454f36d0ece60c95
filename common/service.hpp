#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/axes.hpp"
#include "common/limits/limit_list.hpp"
#include "common/registry.hpp"

namespace feedrate {

/// Requirements that a session's cells place on a service.
struct ServiceNeeds {
  std::string device = "cpu";
  unsigned gpu = 0;
  std::size_t bytes = 0;
};

/// A process that members need alongside this one: a server, a broker or a store's daemon. Either the user specifies a
/// service, or the service is private: started by the first member that needs it, and stopped when this object is
/// destroyed. For use by one thread.
class Service {
 public:
  virtual ~Service() = default;
  /// Starts a private service unless the user specified one; starts it again if it has died or is too small for these
  /// needs. Throws Failure if the service fails to start, BadInput if it cannot be started here.
  virtual void start(const ServiceNeeds& = {}) = 0;
  /// Connects to the service once, as a test. Throws Failure.
  virtual void connect() = 0;
  /// Stops a private service; the next start() starts a new one.
  virtual void stop() = 0;
  /// Whether the user specified the service. Others may use it too, so everything that this run creates there must
  /// expire.
  virtual bool is_external() const = 0;
  /// Address for other processes; valid once the service is started.
  virtual std::string address() const = 0;
  /// Prefix of all names that this run creates in the service.
  virtual std::string own_prefix() const = 0;
  /// Version and settings for the run's row; a setting has the key "config.NAME". Valid once the service is started.
  /// Throws Failure.
  virtual std::map<std::string, std::string> state() = 0;
  /// CPU seconds that the service's processes have used so far, if it can tell. Valid once the service is started.
  virtual std::optional<double> cpu_seconds() { return std::nullopt; }
  /// Measures the limits of the started service; if the list does not measure, only lists them.
  virtual void add_limits(LimitList&) {}
};

struct ServiceEntry {
  std::string description;
  std::vector<Axis> options;  ///< options of every command that may use the service; the first is its address
  std::vector<Axis> worker_options = {};  ///< options of `feedrate worker`
  /// Makes the service from the values of both groups of options.
  std::function<std::unique_ptr<Service>(const Values&)> make;
  /// Returns why no private service can be started here; empty if one can.
  std::function<std::string()> unavailable = [] { return std::string(); };
  unsigned threads = 1;  ///< number of cores that a private service keeps busy
  /// Main function of a private service's process, if it runs this executable: `feedrate helper NAME ARGUMENT…`.
  std::function<int(const std::vector<std::string>& arguments)> serve = {};
};
using Services = Registry<ServiceEntry>;
using ServiceRegistration = Registration<ServiceEntry>;

}  // namespace feedrate
