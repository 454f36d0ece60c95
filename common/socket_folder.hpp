#pragma once
#include <sys/socket.h>

#include <filesystem>
#include <string>

namespace feedrate {

/// A new temporary folder for Unix sockets, in `$TMPDIR` or /tmp. The destructor removes it with its contents.
class SocketFolder {
 public:
  /// Throws BadInput naming `$TMPDIR` if no folder can be created there, or if its path is too long for a socket
  /// address.
  SocketFolder();
  ~SocketFolder();
  SocketFolder(const SocketFolder&) = delete;
  SocketFolder& operator=(const SocketFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  /// Path of a socket in the folder; `name` has at most 16 bytes.
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

/// Returns whether a process listens on a Unix socket of this type. Check this in addition to waitpid(): a killed
/// process closes its sockets before waitpid() reports its end.
bool listens(const std::filesystem::path& socket, int type = SOCK_STREAM);

}  // namespace feedrate
