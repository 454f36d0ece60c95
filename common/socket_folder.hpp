#pragma once
#include <filesystem>
#include <string>

namespace feedrate {

/// A new temporary folder for Unix sockets (`$TMPDIR`, or /tmp). Removed with its contents.
class SocketFolder {
 public:
  /// Throws BadInput naming `$TMPDIR` if no folder can be made there, or if its path is too long for a socket's.
  SocketFolder();
  ~SocketFolder();
  SocketFolder(const SocketFolder&) = delete;
  SocketFolder& operator=(const SocketFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  /// `name` has at most 16 bytes.
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

}  // namespace feedrate
