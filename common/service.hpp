#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/axes.hpp"
#include "common/limits/limit_list.hpp"
#include "common/registry.hpp"

namespace feedrate {

/// What a session's cells put into a service.
struct ServiceNeeds {
  std::string device = "cpu";
  unsigned gpu = 0;
  std::size_t bytes = 0;
};

/// Something that members need running beside this process: a server, a broker, a store's daemon. The user names one,
/// or it is private: started by the first that needs it, and ended with this object. Used by one thread.
class Service {
 public:
  virtual ~Service() = default;
  /// Starts a private one, unless the user named one; again if it has died, or is too small for these needs. Throws
  /// Failure if it does not come up, BadInput if it can't be started here.
  virtual void start(const ServiceNeeds& = {}) = 0;
  /// Connects to it once. Throws Failure.
  virtual void reach() = 0;
  /// Ends a private one; the next start() starts another.
  virtual void stop() = 0;
  /// Whether the user named one: others may use it, too, so what this run makes there must expire.
  virtual bool given() const = 0;
  /// Where other processes reach it, once it was started.
  virtual std::string address() const = 0;
  /// What the names begin with that this run makes there.
  virtual std::string own_prefix() const = 0;
  /// For the run's row, once it was started: version and settings, "config.NAME" for a setting. Throws Failure.
  virtual std::map<std::string, std::string> state() = 0;
  /// Measures its limits, once it was started; names them in a list that measures nothing.
  virtual void add_limits(LimitList&) {}
};

struct ServiceEntry {
  std::string description;
  std::vector<Axis> options;              ///< of every command that may use it; the first says where it is
  std::vector<Axis> worker_options = {};  ///< of `feedrate worker`
  /// From the values of both.
  std::function<std::unique_ptr<Service>(const Values&)> make;
  /// Why no private one can be started here; empty if it can.
  std::function<std::string()> unavailable = [] { return std::string(); };
  unsigned threads = 1;  ///< cores that a private one keeps busy
  /// What the process of a private one does, if it is this executable: `feedrate helper NAME ARGUMENT…`.
  std::function<int(const std::vector<std::string>& arguments)> serve = {};
};
using Services = Registry<ServiceEntry>;
using ServiceRegistration = Registration<ServiceEntry>;

}  // namespace feedrate
