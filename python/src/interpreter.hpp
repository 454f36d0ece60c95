#pragma once
#include <Python.h>
#include <nanobind/nanobind.h>
#include <unistd.h>

#include <atomic>
#include <chrono>

namespace feedrate::python {

inline std::atomic<bool> ended{false};  // the interpreter: it has closed the rings and is about to go

inline constexpr std::chrono::milliseconds kSlice(20);  // how often a wait checks for Ctrl-C

/// Lets other threads have the interpreter. A thread that would take it back from one that ends would be ended itself,
/// in the middle of our frames, which std::terminate answers. So it sleeps, as Python 3.14 has it.
class Unlocked {
 public:
  Unlocked() : state_(PyEval_SaveThread()) {}
  ~Unlocked() {
    while (ended.load() && gettid() != getpid()) pause();
    PyEval_RestoreThread(state_);
  }
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  PyThreadState* state_;
};

}  // namespace feedrate::python
