#pragma once
#include <Python.h>
#include <nanobind/nanobind.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace feedrate::python {

inline std::atomic<bool> ended{false};   // the interpreter: it has closed the rings and is about to go
inline std::atomic<int> coming_back{0};  // threads that saw it alive and now wait for it

inline constexpr std::chrono::milliseconds kSlice(20);  // how often a wait checks for Ctrl-C

/// Lets other threads have the interpreter. A thread that would take it back from one that ends would be ended itself,
/// in the middle of our frames, which std::terminate answers. So it sleeps, as Python 3.14 has it.
class Unlocked {
 public:
  Unlocked() : state_(PyEval_SaveThread()) {}
  ~Unlocked() {
    ++coming_back;  // before the check: the interpreter could end between the check and the call that takes it
    if (ended.load() && gettid() != getpid()) {
      --coming_back;
      while (true) pause();
    }
    PyEval_RestoreThread(state_);
    --coming_back;
  }
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  PyThreadState* state_;
};

/// Called at the interpreter's exit, with the interpreter held: after this only the main thread can take it back.
inline void end_interpreter() {
  ended.store(true);
  while (coming_back.load() != 0) {
    PyThreadState* const state = PyEval_SaveThread();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    PyEval_RestoreThread(state);
  }
}

/// A child of fork() has none of its parent's other threads. Throws ImportError in a sub-interpreter, whose threads and
/// end nobody here would know of.
inline void begin_interpreter() {
  if (PyInterpreterState_GetID(PyInterpreterState_Get()) != 0) {
    PyErr_SetString(PyExc_ImportError, "feedrate: a sub-interpreter is not possible; import it in the main one");
    throw nanobind::python_error();
  }
  pthread_atfork(nullptr, nullptr, [] { coming_back.store(0); });
}

}  // namespace feedrate::python
