#include "experiments/recorder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "common/error.hpp"

namespace feedrate {

Recorder::Recorder(std::filesystem::path file) : file_(std::move(file)) {
  std::size_t whole = 0;
  if (std::ifstream existing(file_, std::ios::binary); existing) {
    std::ostringstream all;
    all << existing.rdbuf();
    const std::string text = all.str();
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line) && !lines.eof();) {
      try {
        earlier_.push_back(Json::parse(line));
      } catch (const Json::exception& error) {
        throw BadInput(fmt::format("{}: line {} is no JSON: {}", file_.string(), earlier_.size() + 1, error.what()));
      }
      whole += line.size() + 1;
    }
  }
  descriptor_ = open(file_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  if (descriptor_ < 0 || ftruncate(descriptor_, static_cast<off_t>(whole)) != 0 ||
      lseek(descriptor_, 0, SEEK_END) < 0) {
    throw BadInput(fmt::format("{}: can't be written: {}", file_.string(), std::strerror(errno)));
  }
}

Recorder::~Recorder() { close(descriptor_); }

void Recorder::write(const Json& row) {
  const std::string line = row.dump() + "\n";
  for (std::size_t done = 0; done < line.size();) {
    const ssize_t n = ::write(descriptor_, line.data() + done, line.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw Failure(fmt::format("{}: writing a row: {}", file_.string(), std::strerror(errno)));
    done += static_cast<std::size_t>(n);
  }
  fsync(descriptor_);
}

}  // namespace feedrate
