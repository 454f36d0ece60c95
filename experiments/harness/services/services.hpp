#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/service.hpp"
#include "experiments/harness/json.hpp"

namespace feedrate {

/// What the user said of the services: values of their options, by service.
struct ServiceChoices {
  std::map<std::string, Values> values = {};

  std::unique_ptr<Service> make(const std::string& name) const;
  /// Whether the user named one.
  bool given(const std::string& name) const;
  /// Why there is none here: the user named none, and no private one can be started. Empty if there is one, or `name`
  /// is empty.
  std::string lacks(const std::string& name) const;
  /// Throws BadInput unless the user named one; `why` says what for.
  void insist_on(const std::string& name, const std::string& why) const;
  /// As a command line has them.
  std::vector<std::string> words() const;
};

/// "--NAME": the option that says where a service is.
std::string option_of(const std::string& service);

/// Those of a session. Each is made when it is first asked for.
class RunningServices {
 public:
  explicit RunningServices(ServiceChoices choices = {}) : choices_(std::move(choices)) {}
  /// The running service. Starts it if it does not run yet, or has died.
  Service& get(const std::string& name, const ServiceNeeds& = {});
  /// Connects to it once, before anything else is done, and does what `then` says. Throws BadInput if either fails.
  void reach(const std::string& name, const std::function<void(const Service&)>& then = {});
  /// Whether anything has asked for it.
  bool used(const std::string& name) const { return running_.contains(name); }
  bool given(const std::string& name) const { return choices_.given(name); }
  /// Ends private ones; get() starts them again.
  void stop();
  /// Of those that were used, for a run's row; one that can't be asked is left out.
  Json states() const;

 private:
  ServiceChoices choices_;
  std::map<std::string, std::unique_ptr<Service>> running_;
};

}  // namespace feedrate
