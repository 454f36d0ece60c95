#pragma once
#include <filesystem>
#include <fstream>
#include <memory>
#include <ostream>
#include <string>
#include <system_error>

namespace feedrate {

/// A file that replaces another as a whole. It is written beside its place, under a hidden name, and commit() renames
/// it; the old file stays as it is until then, and for good if commit() is not reached. A link stays, and the file that
/// it names is replaced, with its permissions kept. A pipe or a device is written where it is, and so is an open file
/// that is named by its descriptor (/dev/stdout, /dev/fd/3): what others write there comes before and behind.
///
/// All members throw std::system_error.
class WholeFile {
 public:
  explicit WholeFile(std::filesystem::path);
  ~WholeFile();
  WholeFile(const WholeFile&) = delete;
  WholeFile& operator=(const WholeFile&) = delete;

  const std::filesystem::path& path() const { return path_; }
  /// Throws by itself when a write fails.
  std::ostream& stream() { return stream_; }
  void commit();

 private:
  std::filesystem::path path_;
  std::filesystem::path partial_;  ///< empty: there is none (any more)
  std::unique_ptr<std::filebuf> buffer_;
  std::ostream stream_{nullptr};
};

/// What the system says of a WholeFile's error. To be called where that is caught: a stream's own error does not tell.
std::string reason_of(const std::system_error&);

}  // namespace feedrate
