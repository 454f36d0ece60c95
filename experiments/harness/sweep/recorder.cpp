#include "experiments/harness/sweep/recorder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "common/error.hpp"
#include "experiments/harness/measure/row_schema.hpp"
#include "experiments/harness/sweep/row_lines.hpp"

namespace feedrate {

Recorder::Recorder(std::filesystem::path file) : file_(std::move(file)) {
  for (const auto& [ending, unpack] : {std::pair{".gz", "gunzip"}, {".xz", "unxz"}}) {
    const std::filesystem::path compressed = file_.string() + ending;
    std::error_code none;  // an invalid path is reported by open()
    if (!std::filesystem::exists(file_, none) && std::filesystem::exists(compressed, none)) {
      throw BadInput(fmt::format("{}: the file is compressed; run `{} {}` before adding rows", file_.string(), unpack,
                                 compressed.string()));
    }
  }
  descriptor_ = open(file_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  if (descriptor_ < 0) throw BadInput(fmt::format("{}: can't be written: {}", file_.string(), std::strerror(errno)));
  // A pipe or a device has no earlier rows.
  if (!std::filesystem::is_regular_file(file_)) return;
  // The kernel releases the lock when the process ends for any reason.
  if (flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
    close(descriptor_);
    throw BadInput(fmt::format("{}: another process is writing to this file; wait until it has ended", file_.string()));
  }
  const std::size_t whole = read_earlier();
  if (ftruncate(descriptor_, static_cast<off_t>(whole)) != 0 || lseek(descriptor_, 0, SEEK_END) < 0) {
    throw BadInput(fmt::format("{}: can't be written: {}", file_.string(), std::strerror(errno)));
  }
}

std::size_t Recorder::read_earlier() {
  std::size_t whole = 0;
  for (const std::string& line : read_lines(file_).whole) {
    try {
      earlier_.push_back(Json::parse(line));
    } catch (const Json::exception& error) {
      throw BadInput(
          fmt::format("{}: line {} is not valid JSON: {}", file_.string(), earlier_.size() + 1, text_of(error)));
    }
    const int version = earlier_.back().value("schema", 0);
    if (version != kRowSchemaVersion) {
      throw BadInput(fmt::format("{}: the rows have schema {}; this program writes schema {}", file_.string(), version,
                                 kRowSchemaVersion));
    }
    whole += line.size() + 1;
  }
  return whole;
}

Recorder::Recorder(Recorder&& other) noexcept
    : file_(std::move(other.file_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      earlier_(std::move(other.earlier_)) {}

Recorder::~Recorder() {
  if (descriptor_ >= 0) close(descriptor_);
}

void Recorder::write(const Json& row) {
  const std::string line = dumped(row) + "\n";
  for (std::size_t done = 0; done < line.size();) {
    const ssize_t n = ::write(descriptor_, line.data() + done, line.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw Failure(fmt::format("{}: could not write a row: {}", file_.string(), std::strerror(errno)));
    done += static_cast<std::size_t>(n);
  }
  fsync(descriptor_);
}

}  // namespace feedrate
