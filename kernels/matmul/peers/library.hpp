#pragma once
#include <dlfcn.h>

#include <initializer_list>
#include <string>

namespace feedrate::ladder {

/// A shared library that is loaded at run time, and stays loaded.
class DynamicLibrary {
 public:
  /// Loads the first of the files that exists.
  explicit DynamicLibrary(std::initializer_list<const char*> files) {
    for (const char* file : files) {
      if (file != nullptr && library_ == nullptr) library_ = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    }
  }
  bool loaded() const { return library_ != nullptr; }
  /// Sets `function` to the symbol, or to null if the library lacks it.
  template <class Function>
  void find(const std::string& symbol, Function*& function) const {
    function = library_ == nullptr ? nullptr : reinterpret_cast<Function*>(dlsym(library_, symbol.c_str()));
  }

 private:
  void* library_ = nullptr;
};

}  // namespace feedrate::ladder
