#include "experiments/harness/services/services.hpp"

#include <fmt/format.h>

namespace feedrate {
namespace {

const ServiceEntry& entry_of(const std::string& name) { return Services::instance().get("service", name); }

}  // namespace

std::string option_of(const std::string& service) { return "--" + entry_of(service).options.front().name; }

std::unique_ptr<Service> ServiceChoices::make(const std::string& name) const {
  const auto found = values.find(name);
  return entry_of(name).make(found == values.end() ? Values{} : found->second);
}

bool ServiceChoices::is_external(const std::string& name) const {
  const auto found = values.find(name);
  if (found == values.end()) return false;
  const auto place = found->second.find(entry_of(name).options.front().name);
  return place != found->second.end() && !text_of(place->second).empty();
}

std::string ServiceChoices::unavailable_reason(const std::string& name) const {
  return name.empty() || is_external(name) ? "" : entry_of(name).unavailable();
}

void ServiceChoices::insist_on(const std::string& name, const std::string& why) const {
  if (is_external(name)) return;
  throw BadInput(option_of(name), "", fmt::format("{}; {}", entry_of(name).options.front().help, why));
}

std::vector<std::string> ServiceChoices::words() const {
  std::vector<std::string> words;
  for (const auto& [name, options] : values) {
    for (const auto& [option, value] : options) words.insert(words.end(), {"--" + option, text_of(value)});
  }
  return words;
}

Service& RunningServices::get(const std::string& name, const ServiceNeeds& needs) {
  auto& service = running_[name];
  if (!service) service = choices_.make(name);
  service->start(needs);
  return *service;
}

void RunningServices::connect(const std::string& name, const std::function<void(const Service&)>& then) {
  try {
    Service& service = get(name);
    service.connect();
    if (then) then(service);
  } catch (const Failure& failure) {
    throw BadInput(fmt::format("{}: no usable server: {}", option_of(name), failure.what()));
  }
}

void RunningServices::stop() {
  for (const auto& [name, service] : running_) service->stop();
}

Json RunningServices::states() const {
  constexpr std::string_view kSetting = "config.";
  Json all = Json::object();
  for (const auto& [name, service] : running_) {
    try {
      Json state = Json::object();
      for (const auto& [key, value] : service->state()) {
        if (key.starts_with(kSetting)) {
          state["config"][key.substr(kSetting.size())] = value;
        } else {
          state[key] = value;
        }
      }
      all[name] = std::move(state);
    } catch (const Failure&) {  // cells that need the service will report the failure
    }
  }
  return all;
}

}  // namespace feedrate
