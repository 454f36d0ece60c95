#pragma once
#include <Python.h>
#include <nanobind/nanobind.h>
#include <unistd.h>

#include <chrono>

namespace feedrate::python {

inline constexpr std::chrono::milliseconds kSlice(20);  // how often a wait checks for Ctrl-C

/// Takes the interpreter back. Python up to 3.13 ends a thread that asks for an interpreter that is gone (pthread_exit), in
/// the middle of our frames, which std::terminate would answer. Such a thread sleeps here, as Python 3.14 has it.
[[gnu::noinline]] inline void take_back(PyThreadState* state) {
  try {
    PyEval_RestoreThread(state);
  } catch (...) {  // the unwinding of a thread that ends; it must not go on
    while (true) pause();
  }
}

/// Lets other threads have the interpreter.
class Unlocked {
 public:
  Unlocked() : state_(PyEval_SaveThread()) {}
  ~Unlocked() { take_back(state_); }
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  PyThreadState* state_;
};

/// Throws ImportError in a sub-interpreter, whose threads and end nobody here would know of.
inline void begin_interpreter() {
  if (PyInterpreterState_GetID(PyInterpreterState_Get()) != 0) {
    PyErr_SetString(PyExc_ImportError, "feedrate: a sub-interpreter is not possible; import it in the main one");
    throw nanobind::python_error();
  }
}

}  // namespace feedrate::python
