#include "kernels/ladder/python_peer.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include "common/error.hpp"
#include "python_sources.hpp"  // generated from the .py files

namespace feedrate::ladder {
namespace {

constexpr const char *kFirstModule = "python_peer", *kVariable = "FEEDRATE_PEERS_PYTHON";

/// Text in UTF-8 as a Python expression.
std::string literal_of(std::string_view text) {
  std::string made = "b'";
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    const bool plain = code >= ' ' && code < 0x7F && c != '\'' && c != '\\';
    made += plain ? std::string(1, c) : fmt::format("\\x{:02x}", code);
  }
  return made + "'.decode()";
}

std::string_view source_of(std::string_view module) {
  for (const auto& [name, text] : kPythonSources) {
    if (name == module) return text;
  }
  throw Failure(fmt::format("this build has no Python module {}", module));
}

/// The interpreter whose packages are used, as it describes itself. Finding it starts no interpreter in this process.
struct Interpreter {
  std::string why_not;  ///< why it cannot be used; empty if it can
  std::string library, home, program, paths;
  std::vector<std::string> folders;  ///< of `paths`, which is a Python list

  /// Throws BadInput if kVariable names a program that cannot be used.
  static const Interpreter& instance() {
    static const Interpreter found;
    if (const char* const named = std::getenv(kVariable); named != nullptr && !found.why_not.empty()) {
      throw BadInput(std::string("$") + kVariable, named, "a Python with its shared library; " + found.why_not);
    }
    return found;
  }
  /// By its path, and then by its name: Debian's own Python names a folder in which the library is not.
  void* open(int flags) const {
    void* const by_path = dlopen(library.c_str(), flags);
    return by_path != nullptr ? by_path : dlopen(std::filesystem::path(library).filename().c_str(), flags);
  }

 private:
  Interpreter() {
    if (dlsym(RTLD_DEFAULT, "Py_IsInitialized") != nullptr) {
      why_not = "this process already runs Python";
      return;
    }
    const char* const named = std::getenv(kVariable);
    program = named == nullptr ? "python3" : named;
    std::string words;
    for (const char c : program) words += c == '\'' ? "'\\''" : std::string(1, c);
    const std::string command = "'" + words +
                                "' -c 'import os, sys, sysconfig; v = sysconfig.get_config_var; p = [f for f in "
                                "sys.path if f]; print(os.path.join(v(\"LIBDIR\") or \"\", v(\"INSTSONAME\") or \"\"), "
                                "sys.base_prefix, sys.executable, p, *p, sep=\"\\n\")' 2>/dev/null </dev/null";
    std::string text;
    if (const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), ::pclose); pipe) {
      std::array<char, 4096> part{};
      while (const std::size_t n = ::fread(part.data(), 1, part.size(), pipe.get())) text.append(part.data(), n);
    }
    std::istringstream lines(text);
    std::string executable;
    for (std::string* each : {&library, &home, &executable, &paths}) std::getline(lines, *each);
    for (std::string folder; std::getline(lines, folder);) folders.push_back(folder);
    if (folders.empty()) {
      why_not = fmt::format("{} did not run", program);
    } else if (void* const opened = open(RTLD_LAZY | RTLD_LOCAL); opened != nullptr) {
      dlclose(opened);
    } else {
      const char* const reason = dlerror();
      why_not = fmt::format("its shared library cannot be loaded: {}", reason == nullptr ? library : reason);
    }
    program = executable;
  }
};

/// Python in this process. It starts once and is never stopped, because PyTorch's threads may outlive main().
class Python {
 public:
  /// Throws Failure if it could not be started; it is not started again.
  static Python& instance() {
    static auto* const started = new Python;
    if (!started->why_not_.empty()) throw Failure(started->why_not_);
    return *started;
  }

  std::string evaluate(const std::string& expression) {
    const std::scoped_lock lock(mutex_);
    answer_.front() = '\0';
    const int failed = evaluate_(expression.c_str(), answer_.data(), answer_.size());
    if (failed != 0) throw Failure(std::string("Python: ") + answer_.data());
    return answer_.data();
  }

 private:
  Python() {
    try {
      start(Interpreter::instance());
    } catch (const Failure& failure) {
      why_not_ = failure.what();
    }
  }

  void start(const Interpreter& python) {
    if (!python.why_not.empty()) throw Failure(python.why_not);
    void* const library = python.open(RTLD_NOW | RTLD_GLOBAL);  // the packages' own libraries need its symbols
    const auto find = [&]<class Function>(const char* symbol, Function*& function) {
      function = reinterpret_cast<Function*>(dlsym(library, symbol));
      if (function == nullptr) throw Failure(fmt::format("{} lacks {}", python.library, symbol));
    };
    void (*initialize)(int) = nullptr;
    int (*run)(const char*) = nullptr;
    void* (*release)() = nullptr;
    find("Py_InitializeEx", initialize);
    find("PyRun_SimpleString", run);
    find("PyEval_SaveThread", release);
    const char* const given = std::getenv("PYTHONHOME");
    const std::optional<std::string> before = given == nullptr ? std::nullopt : std::optional<std::string>(given);
    setenv("PYTHONHOME", python.home.c_str(), 1);
    initialize(0);  // without signal handlers
    before ? setenv("PYTHONHOME", before->c_str(), 1) : unsetenv("PYTHONHOME");
    const std::string code = fmt::format(
        "import ctypes, sys, types\nsys.path[:] = {}\nsys.executable = {}\n"
        "first = sys.modules[{}] = types.ModuleType({})\nexec({}, first.__dict__)\n"
        "ctypes.c_void_p.from_address({}).value = ctypes.cast(first.evaluate, ctypes.c_void_p).value\n",
        python.paths, literal_of(python.program), literal_of(kFirstModule), literal_of(kFirstModule),
        literal_of(source_of(kFirstModule)), reinterpret_cast<std::uintptr_t>(&evaluate_));
    const int failed = run(code.c_str());
    release();  // the interpreter's lock, which each call takes
    if (failed != 0 || evaluate_ == nullptr) throw Failure("Python: the first module failed; its error is above");
  }

  std::string why_not_;
  std::mutex mutex_;
  std::array<char, 4096> answer_{};
  int (*evaluate_)(const char* expression, char* answer, std::size_t size) = nullptr;
};

}  // namespace

std::string PythonPeer::missing(const std::string& package) {
  const Interpreter& python = Interpreter::instance();
  if (!python.why_not.empty()) {
    return fmt::format("Python cannot be used: {}; install libpython3-dev, or set {} to another Python", python.why_not,
                       kVariable);
  }
  for (const std::string& folder : python.folders) {
    std::error_code ignored;
    if (std::filesystem::exists(std::filesystem::path(folder) / package / "__init__.py", ignored)) return "";
  }
  return fmt::format("{} has no package {}: install it from PyPI, or set {} to another Python", python.program, package,
                     kVariable);
}

PythonPeer::PythonPeer(const std::string& module, const std::string& arguments) {
  Python& python = Python::instance();
  python.evaluate(fmt::format("load({}, {})", literal_of(module), literal_of(source_of(module))));
  number_ = python.evaluate(fmt::format("add(modules[{}].Peer({}))", literal_of(module), arguments));
}

PythonPeer::~PythonPeer() {
  try {
    Python::instance().evaluate("peers.pop(" + number_ + ")");
  } catch (const Failure&) {  // nothing depends on it
  }
}

std::string PythonPeer::call(const std::string& method, const std::string& arguments) const {
  return Python::instance().evaluate(fmt::format("peers[{}].{}({})", number_, method, arguments));
}

std::map<std::string, std::string> PythonPeer::chosen() const {
  std::map<std::string, std::string> found;
  std::istringstream lines(Python::instance().evaluate(
      fmt::format("'\\n'.join(f'{{key}}={{value}}' for key, value in peers[{}].chosen.items())", number_)));
  for (std::string line; std::getline(lines, line);) {
    const std::size_t end = line.find('=');
    found[line.substr(0, end)] = line.substr(end + 1);
  }
  return found;
}

std::string python_text(const Matrix& matrix) {
  return fmt::format("Memory({}, '{}', {}, {}, {}, {})", reinterpret_cast<std::uintptr_t>(matrix.data),
                     text_of(matrix.element), matrix.batch, matrix.rows, matrix.columns, matrix.stride);
}

}  // namespace feedrate::ladder
