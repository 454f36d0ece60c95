#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/service.hpp"
#include "experiments/harness/json.hpp"

namespace feedrate {

/// The user's choice of services: option values, by service.
struct ServiceChoices {
  std::map<std::string, Values> values = {};

  std::unique_ptr<Service> make(const std::string& name) const;
  /// Whether the user specified the service's address.
  bool is_external(const std::string& name) const;
  /// Returns the reason why the service is unavailable: the user did not specify it, and no private one can be started.
  /// Empty if it is available or `name` is empty.
  std::string unavailable_reason(const std::string& name) const;
  /// Throws BadInput unless the user specified the service; `why` ends the message.
  void insist_on(const std::string& name, const std::string& why) const;
  /// The choices as command-line arguments.
  std::vector<std::string> words() const;
};

/// "--NAME": the option for a service's address.
std::string option_of(const std::string& service);

/// Services of a session. Each is created when it is first requested.
class RunningServices {
 public:
  explicit RunningServices(ServiceChoices choices = {}) : choices_(std::move(choices)) {}
  /// Returns the running service. Starts it if it is not running yet or has died.
  Service& get(const std::string& name, const ServiceNeeds& = {});
  /// Connects to the service once, before any other work, and calls `then`. Throws BadInput if either fails.
  void connect(const std::string& name, const std::function<void(const Service&)>& then = {});
  /// Whether the service has been requested.
  bool used(const std::string& name) const { return running_.contains(name); }
  bool is_external(const std::string& name) const { return choices_.is_external(name); }
  /// Stops private services; get() restarts them.
  void stop();
  /// States of the used services, for a run's row; a service that does not respond is left out.
  Json states() const;

 private:
  ServiceChoices choices_;
  std::map<std::string, std::unique_ptr<Service>> running_;
};

}  // namespace feedrate
