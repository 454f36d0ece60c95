#pragma once
#include <map>
#include <string>
#include <utility>

#include "common/error.hpp"

namespace feedrate {

/// The members of one axis by name. Each member's file adds itself while the program loads, through a `Registration`;
/// nothing else needs to know that the file exists.
template <class Entry>
class Registry {
 public:
  static Registry& instance() {
    static Registry registry;
    return registry;
  }
  void add(std::string name, Entry entry) { entries_.emplace(std::move(name), std::move(entry)); }
  const std::map<std::string, Entry>& entries() const { return entries_; }
  std::string names() const {
    std::string all;
    for (const auto& [name, entry] : entries_) all += (all.empty() ? "" : ", ") + name;
    return all;
  }
  /// Throws BadInput naming `option` and the allowed names.
  const Entry& get(const std::string& option, const std::string& name) const {
    const auto found = entries_.find(name);
    if (found == entries_.end()) throw BadInput(option, name, names());
    return found->second;
  }

 private:
  std::map<std::string, Entry> entries_;
};

template <class Entry>
struct Registration {
  Registration(std::string name, Entry entry) { Registry<Entry>::instance().add(std::move(name), std::move(entry)); }
};

}  // namespace feedrate
