#include "experiments/harness/atomic_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <ext/stdio_filebuf.h>
#include <optional>
#include <system_error>

namespace feedrate {
namespace {

namespace fs = std::filesystem;

/// Creates an empty file in the folder. It has a short name, because the target's name may already have the maximum
/// length.
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

/// Returns the file descriptor to which a path such as /dev/stdout resolves.
std::optional<int> descriptor_of(fs::path path) {
  for (int links = 0; links < 40; ++links) {
    const fs::path folder = path.parent_path();
    if (folder == "/dev/fd" || folder == "/proc/self/fd") {
      const std::string name = path.filename();
      int number = -1;
      const auto read = std::from_chars(name.data(), name.data() + name.size(), number);
      return read.ec == std::errc() && read.ptr == name.data() + name.size() ? std::optional(number) : std::nullopt;
    }
    if (!fs::is_symlink(path)) break;
    path = folder / fs::read_symlink(path);
  }
  return std::nullopt;
}

}  // namespace

std::string reason_of(const std::system_error& error) {
  return error.code() == std::io_errc::stream ? std::strerror(errno) : error.code().message();
}

AtomicFile::AtomicFile(fs::path path) : path_(std::move(path)), buffer_(std::make_unique<std::filebuf>()) {
  constexpr auto kMode = std::ios::out | std::ios::binary;
  const fs::file_status old = fs::status(path_);
  const bool special = fs::exists(old) && !fs::is_regular_file(old);
  const std::optional<int> descriptor = descriptor_of(path_);
  // Dangling links are followed too. /dev/stdout may resolve to a pipe, which has no path.
  for (int links = 0; !special && !descriptor && fs::is_symlink(path_) && links < 40; ++links) {
    path_ = path_.parent_path() / fs::read_symlink(path_);
  }
  if (fs::is_directory(old)) throw std::system_error(EISDIR, std::generic_category(), path_.string());
  if (descriptor) {
    const int own = fcntl(*descriptor, F_DUPFD_CLOEXEC, 0);
    if (own >= 0) buffer_ = std::make_unique<__gnu_cxx::stdio_filebuf<char>>(own, kMode);
  } else if (special) {
    buffer_->open(path_, kMode);
  } else {
    partial_ = make_partial(path_.has_parent_path() ? path_.parent_path() : ".");
    if (fs::exists(old)) fs::permissions(partial_, old.permissions());
    buffer_->open(partial_, kMode);
  }
  if (!buffer_->is_open()) throw std::system_error(errno, std::generic_category(), path_.string());
  stream_.rdbuf(buffer_.get());
  stream_.exceptions(std::ios::failbit | std::ios::badbit);
}

AtomicFile::~AtomicFile() {
  const int reason = errno;  // for reason_of()
  std::error_code ignored;
  if (!partial_.empty()) fs::remove(partial_, ignored);
  errno = reason;
}

void AtomicFile::commit() {
  if (buffer_->close() == nullptr) throw std::system_error(errno, std::generic_category(), path_.string());
  if (partial_.empty()) return;
  fs::rename(partial_, path_);
  partial_.clear();
}

}  // namespace feedrate
