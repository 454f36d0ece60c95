#include "experiments/storage/fio.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <memory>

#include "common/error.hpp"
#include "common/units.hpp"
#include "experiments/harness/json.hpp"

namespace feedrate::storage {
namespace {

/// A path as one word of a shell command.
std::string quoted(const std::string& path) {
  std::string text = "'";
  for (const char c : path) text += c == '\'' ? "'\\''" : std::string(1, c);
  return text + "'";
}

/// Runs a shell command and returns its output. Throws Failure if its exit code is not 0.
std::string output_of(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), ::pclose);
  if (!pipe) throw Failure("cannot start a shell");
  std::string text;
  std::array<char, 4096> part{};
  while (const std::size_t n = ::fread(part.data(), 1, part.size(), pipe.get())) text.append(part.data(), n);
  return text;
}

}  // namespace

double read_fio(const FioJob& job, const File& file) {
  const std::string operation = job.sequential ? (job.read ? "read" : "write") : job.read ? "randread" : "randwrite";
  const std::string text = output_of(fmt::format(
      "command -v fio >/dev/null && fio --name=limit --filename={} --size={} --rw={} --bs={} --iodepth={} --numjobs={} "
      "--direct=1 --ioengine=io_uring --runtime=1 --time_based --group_reporting --randrepeat=0 --refill_buffers "
      "--output-format=json 2>/dev/null",
      quoted(file.path), file.bytes, operation, job.block, job.depth, job.threads));
  if (text.empty()) throw Failure("fio did not run; install it (Debian package fio)");
  const Json result = Json::parse(text.substr(text.find('{')), nullptr, false);
  if (result.is_discarded() || !result.contains("jobs")) throw Failure("fio printed no results");
  return result["jobs"][0][job.read ? "read" : "write"].value("bw_bytes", 0.0);
}

std::string fio_limit(const FioJob& job) {
  return fmt::format("fio_{}_{}_{}_{}x{}_bytes_per_second", job.sequential ? "sequential" : "random",
                     job.read ? "read" : "write", job.block, job.depth, job.threads);
}

void add_fio_limit(LimitList& limits, const FioJob& job, const File& file) {
  limits.add(
      {fio_limit(job),
       Quantity::bytes_per_second,
       {"host", "drive"},
       fmt::format("fio, O_DIRECT, io_uring, {} bytes, depth {}, {} threads", job.block, job.depth, job.threads)},
      [&] { return read_fio(job, file); });
}

}  // namespace feedrate::storage
