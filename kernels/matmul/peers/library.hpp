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
      if (file == nullptr || library_ != nullptr) continue;
      library_ = dlopen(file, RTLD_NOW | RTLD_LOCAL);
      file_ = file;
    }
  }
  bool loaded() const { return library_ != nullptr; }
  /// The file that was loaded; if none was, the last that was tried.
  const std::string& file() const { return file_; }
  /// Sets `function` to the symbol, or to null if the library lacks it.
  template <class Function>
  void find(const std::string& symbol, Function*& function) const {
    function = library_ == nullptr ? nullptr : reinterpret_cast<Function*>(dlsym(library_, symbol.c_str()));
  }

 private:
  void* library_ = nullptr;
  std::string file_;
};

}  // namespace feedrate::ladder
