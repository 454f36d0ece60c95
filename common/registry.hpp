#pragma once
#include <initializer_list>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/error.hpp"

namespace feedrate {

/// Names that two files register in one registry, with the files, of all registries.
inline std::string& doubles() {
  static std::string found;
  return found;
}
/// Throws BadInput naming them: which of two members would be measured is up to the linker. For main(): registration
/// comes before it, where nothing could catch the error.
inline void refuse_doubles() {
  if (!doubles().empty()) throw BadInput("two files register one name; rename one: " + doubles());
}

/// The members of one axis by name. Each member's file adds itself while the program loads, through a `Registration`;
/// nothing else needs to know that the file exists.
template <class Entry>
class Registry {
 public:
  static Registry& instance() {
    static Registry registry;
    return registry;
  }
  void add(const std::string& name, Entry entry, const char* file) {
    const auto [known, fresh] = files_.emplace(name, file);
    if (!fresh) doubles() += (doubles().empty() ? "" : "; ") + name + ": " + known->second + " and " + file;
    entries_.emplace(name, std::move(entry));
  }
  const std::map<std::string, Entry>& entries() const { return entries_; }
  std::vector<std::string> list() const {
    std::vector<std::string> all;
    for (const auto& [name, entry] : entries_) all.push_back(name);
    return all;
  }
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
  std::map<std::string, std::string> files_;  // where each member is registered
};

template <class Entry>
struct Registration {
  /// `file` is the one that registers: as a default it is the caller's. (std::source_location is what clang 14 lacks.)
  Registration(const std::string& name, Entry entry, const char* file = __builtin_FILE()) {
    Registry<Entry>::instance().add(name, std::move(entry), file);
  }
  /// Several of one file.
  Registration(std::initializer_list<std::pair<const char*, Entry>> members, const char* file = __builtin_FILE()) {
    for (const auto& [name, entry] : members) Registry<Entry>::instance().add(name, entry, file);
  }
};

}  // namespace feedrate
