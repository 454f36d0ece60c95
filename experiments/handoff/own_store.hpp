#pragma once
#include <cstddef>
#include <string>

#include "common/socket_folder.hpp"

namespace feedrate::handoff {

/// A tensor store of this run's own, as `feedrate store serve` starts it in a process of its own, until this ends.
class OwnStore {
 public:
  /// `device`: `cpu` or `cuda:N`. Throws Failure where it does not start.
  OwnStore(const std::string& device, std::size_t bytes);
  OwnStore(const OwnStore&) = delete;
  OwnStore& operator=(const OwnStore&) = delete;
  ~OwnStore();
  const std::string& socket() const { return socket_; }
  std::size_t bytes() const { return bytes_; }

 private:
  void end();
  std::size_t bytes_;
  SocketFolder folder_;
  std::string socket_;
  int process_ = -1;
};

}  // namespace feedrate::handoff
