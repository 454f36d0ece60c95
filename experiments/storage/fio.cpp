#include "experiments/storage/fio.hpp"

#include <fmt/format.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <memory>
#include <utility>

#include "common/error.hpp"
#include "common/units.hpp"
#include "experiments/harness/json.hpp"

namespace feedrate::storage {
namespace {

constexpr std::size_t kMaxOutput = std::size_t{4} << 20;
constexpr double kMaxRate = 1e13;  // bytes per second

/// A path as one word of a shell command, in which fio separates names by colons.
std::string quoted(const std::string& path) {
  std::string text = "'";
  for (const char c : path) text += c == '\'' ? "'\\''" : c == ':' ? "\\:" : std::string(1, c);
  return text + "'";
}

/// Runs a shell command and returns its output. Throws Failure if its exit code is not 0.
std::string output_of(const std::string& command) {
  std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), ::pclose);
  if (!pipe) throw Failure("cannot start a shell");
  std::string text;
  std::array<char, 4096> part{};
  while (true) {
    const std::size_t n = ::fread(part.data(), 1, part.size(), pipe.get());
    text.append(part.data(), n);
    if (text.size() > kMaxOutput) throw Failure("fio printed too much");
    if (n != 0) continue;
    if (::ferror(pipe.get()) == 0 || errno != EINTR) break;
    ::clearerr(pipe.get());  // a signal interrupted the read
  }
  constexpr int kTimedOut = 124, kNotFound = 127;  // exit codes of timeout(1)
  const int status = ::pclose(pipe.release());
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  if (code == kNotFound) throw Failure("fio did not run; install it (Debian package fio)");
  if (code == kTimedOut) throw Failure("fio did not end within a minute");
  if (code != 0) throw Failure(fmt::format("fio failed (exit code {})", code));
  return text;
}

}  // namespace

double read_fio(const FioJob& job, const File& file) {
  const std::string operation = job.sequential ? (job.read ? "read" : "write") : job.read ? "randread" : "randwrite";
  const std::string text = output_of(fmt::format(
      "timeout --kill-after=5 60 fio --name=limit --filename={} --size={} --rw={} --bs={} --iodepth={} --numjobs={} "
      "--direct=1 --ioengine=io_uring --registerfiles --fixedbufs --runtime=1 --time_based --group_reporting "
      "--randrepeat=0 --refill_buffers "
      "--output-format=json 2>/dev/null",
      quoted(file.path), file.bytes, operation, job.block, job.depth, job.threads));
  return fio_bytes_per_second(text, job.read);
}

double fio_bytes_per_second(std::string_view text, bool read) {
  if (text.empty()) throw Failure("fio did not run; install it (Debian package fio)");
  const std::size_t begin = text.find('{');  // after warnings
  const Json result = begin == text.npos ? Json() : Json::parse(text.substr(begin), nullptr, false);
  const Json::json_pointer place(read ? "/jobs/0/read/bw_bytes" : "/jobs/0/write/bw_bytes");
  if (!result.is_object() || !result.contains(place) || !result.at(place).is_number()) {
    throw Failure("fio printed no results");
  }
  if (const double rate = result.at(place).get<double>(); std::isfinite(rate) && rate > 0 && rate < kMaxRate)
    return rate;
  throw Failure("fio moved no bytes");
}

std::string fio_limit(const FioJob& job) {
  return fmt::format("fio_{}_{}_{}_{}x{}_bytes_per_second", job.sequential ? "sequential" : "random",
                     job.read ? "read" : "write", job.block, job.depth, job.threads);
}

void add_fio_limit(LimitList& limits, const FioJob& job, std::function<File()> file) {
  limits.add(
      {fio_limit(job),
       Quantity::bytes_per_second,
       {"host", "drive"},
       fmt::format("fio, O_DIRECT, io_uring, {} bytes, depth {}, {} threads", job.block, job.depth, job.threads)},
      [job, file = std::move(file)] {
        try {
          return read_fio(job, file());
        } catch (const BadInput& unusable) {  // a folder or device that cannot be used fails its cells, not the sweep
          throw Failure(unusable.what());
        }
      });
}

}  // namespace feedrate::storage
