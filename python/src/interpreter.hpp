#pragma once
#include <Python.h>
#include <nanobind/nanobind.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

namespace feedrate::python {

inline constexpr std::chrono::milliseconds kSlice(20);  // interval at which a wait checks for Ctrl-C

/// Reacquires the interpreter lock. If the interpreter is finalized, Python up to 3.13 ends the thread with
/// pthread_exit in the middle of our frames, which would call std::terminate. Here such a thread sleeps forever, as in
/// Python 3.14.
[[gnu::noinline]] inline void take_back(PyThreadState* state) {
  try {
    PyEval_RestoreThread(state);
  } catch (...) {  // forced unwinding by pthread_exit, which must not continue
    while (true) pause();
  }
}

/// Releases the interpreter lock during its lifetime.
class Unlocked {
 public:
  Unlocked() : state_(PyEval_SaveThread()) {}
  ~Unlocked() { take_back(state_); }
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  PyThreadState* state_;
};

using Seconds = std::chrono::duration<double>;

/// Waits in slices, without the interpreter lock, and calls `done` for each slice. Returns false after the timeout.
template <class Done>
bool wait_in_slices(double timeout, const Done& done, std::chrono::milliseconds longest = kSlice) {
  const auto deadline = std::chrono::steady_clock::now() + Seconds(std::min(timeout, 1e9));
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(deadline - std::chrono::steady_clock::now());
    const auto slice = std::clamp<std::chrono::nanoseconds>(left, std::chrono::nanoseconds(0), longest);
    {
      const Unlocked unlocked;
      if (done(slice)) return true;
    }
    if (left <= longest) return false;
    if (PyErr_CheckSignals() != 0) throw nanobind::python_error();
  }
}

/// Throws ImportError in a sub-interpreter, whose threads and finalization this module does not track.
inline void begin_interpreter() {
  if (PyInterpreterState_GetID(PyInterpreterState_Get()) != 0) {
    PyErr_SetString(PyExc_ImportError,
                    "feedrate: sub-interpreters are not supported; import it in the main interpreter");
    throw nanobind::python_error();
  }
}

}  // namespace feedrate::python
