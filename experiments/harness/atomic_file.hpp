#pragma once
#include <filesystem>
#include <fstream>
#include <memory>
#include <ostream>
#include <string>
#include <system_error>

namespace feedrate {

/// A file that replaces another one atomically. It is written in the same folder under a hidden name, and commit()
/// renames it. The old file remains unchanged until then, or permanently if commit() is not reached. A link is kept:
/// the file to which it points is replaced, and that file's permissions are kept. Pipes and devices are written
/// directly, as are open files that are named by their descriptor (/dev/stdout, /dev/fd/3), so other processes' output
/// may precede and follow the contents.
///
/// All members throw std::system_error.
class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  const std::filesystem::path& path() const { return path_; }
  /// The stream throws if a write fails.
  std::ostream& stream() { return stream_; }
  void commit();

 private:
  std::filesystem::path path_;
  std::filesystem::path partial_;  ///< empty: no partial file, or already renamed
  std::unique_ptr<std::filebuf> buffer_;
  std::ostream stream_{nullptr};
};

/// Returns the system's message for an AtomicFile error. Call it in the handler, while errno is still valid: a stream's
/// exception does not contain the reason.
std::string reason_of(const std::system_error&);

}  // namespace feedrate
