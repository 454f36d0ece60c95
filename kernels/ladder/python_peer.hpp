#pragma once
#include <cstddef>
#include <map>
#include <string>

#include "kernels/ladder/matrix.hpp"

/// Peers that are written in Python, such as PyTorch. The interpreter runs in this process, so that its kernels go into
/// the same stream and graph as a rung's, on the same matrices. Its calls take microseconds, which do not count when
/// graphs are timed.
namespace feedrate::ladder {

/// An object of the class `Peer` of one of this build's Python modules: the .py files beside those that use them.
class PythonPeer {
 public:
  /// Why modules that import `package` cannot run here; empty if they can. The interpreter is `python3`, or the one
  /// that FEEDRATE_PEERS_PYTHON names, with its packages. Throws BadInput if that variable names none that can be used.
  static std::string missing(const std::string& package);

  /// Starts Python if this is the first peer, and creates `module.Peer(arguments)`; the arguments are Python
  /// expressions. Throws Failure with Python's message.
  PythonPeer(const std::string& module, const std::string& arguments);
  ~PythonPeer();
  PythonPeer(const PythonPeer&) = delete;
  PythonPeer& operator=(const PythonPeer&) = delete;

  /// Calls a method, and returns its result as text. Throws Failure with Python's message.
  std::string call(const std::string& method, const std::string& arguments) const;
  /// The attribute `chosen`, a dictionary of texts.
  std::map<std::string, std::string> chosen() const;

 private:
  std::string number_;  // in the dictionary `peers` of python_peer.py
};

/// A matrix as arguments of Memory in python_peer.py.
std::string python_text(const Matrix&);

}  // namespace feedrate::ladder
