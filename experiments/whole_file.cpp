#include "experiments/whole_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>

namespace feedrate {
namespace {

namespace fs = std::filesystem;

/// A new empty file in the folder. Its name is short: that of the file to be may have all the bytes that a name can.
fs::path make_partial(const fs::path& folder) {
  for (unsigned i = 0;; ++i) {
    fs::path path = folder / fmt::format(".{}-{}.partial", getpid(), i);
    const int made = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (made >= 0) {
      close(made);
      return path;
    }
    if (errno != EEXIST) throw std::system_error(errno, std::generic_category(), folder.string());
  }
}

}  // namespace

std::string reason_of(const std::system_error& error) {
  return error.code() == std::io_errc::stream ? std::strerror(errno) : error.code().message();
}

WholeFile::WholeFile(fs::path path) : path_(std::move(path)) {
  // A link that names nothing yet is followed, too. A ring of links is left to status(), which throws.
  for (int links = 0; fs::is_symlink(path_) && links < 40; ++links) {
    path_ = path_.parent_path() / fs::read_symlink(path_);
  }
  const fs::file_status old = fs::status(path_);
  if (fs::is_directory(old)) throw std::system_error(EISDIR, std::generic_category(), path_.string());
  if (fs::exists(old) && !fs::is_regular_file(old)) {
    stream_.open(path_, std::ios::binary);
  } else {
    partial_ = make_partial(path_.has_parent_path() ? path_.parent_path() : ".");
    if (fs::exists(old)) fs::permissions(partial_, old.permissions());
    stream_.open(partial_, std::ios::binary);
  }
  if (!stream_) throw std::system_error(errno, std::generic_category(), path_.string());
  stream_.exceptions(std::ios::failbit | std::ios::badbit);
}

WholeFile::~WholeFile() {
  const int reason = errno;  // for reason_of()
  std::error_code ignored;
  if (!partial_.empty()) fs::remove(partial_, ignored);
  errno = reason;
}

void WholeFile::commit() {
  stream_.close();
  if (partial_.empty()) return;
  fs::rename(partial_, path_);
  partial_.clear();
}

}  // namespace feedrate
