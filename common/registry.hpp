#pragma once
#include <initializer_list>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/error.hpp"

namespace feedrate {

/// For all registries: the names that two files register in the same registry, and those files.
inline std::string& doubles() {
  static std::string found;
  return found;
}
/// Throws a BadInput that names the duplicates: otherwise the linker would determine which of the two members is
/// measured. Called by main(), because an exception during registration, before main(), could not be caught.
inline void reject_duplicates() {
  if (!doubles().empty()) throw BadInput("two files register the same name; rename one of them: " + doubles());
}

/// The members of one axis by name. Each member's file registers it through a `Registration` while the program loads;
/// no other code needs to know that the file exists.
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
  /// Returns the entry called `name`; throws BadInput that names `option` and the allowed names.
  const Entry& get(const std::string& option, const std::string& name) const {
    const auto found = entries_.find(name);
    if (found == entries_.end()) throw BadInput(option, name, names());
    return found->second;
  }

 private:
  std::map<std::string, Entry> entries_;
  std::map<std::string, std::string> files_;  // keyed by member: the file that registers it
};

template <class Entry>
struct Registration {
  /// `file`: the registering file; the default is the caller's file. (clang 14 lacks std::source_location.)
  Registration(const std::string& name, Entry entry, const char* file = __builtin_FILE()) {
    Registry<Entry>::instance().add(name, std::move(entry), file);
  }
  /// Registers several members of one file.
  Registration(std::initializer_list<std::pair<const char*, Entry>> members, const char* file = __builtin_FILE()) {
    for (const auto& [name, entry] : members) Registry<Entry>::instance().add(name, entry, file);
  }
};

}  // namespace feedrate
