#pragma once
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "common/limits/limit_list.hpp"
#include "variants/storage/engine.hpp"

namespace feedrate::storage {

/// A job of fio, the usual benchmark of drives, with the parameters of a point. It always uses O_DIRECT and io_uring.
struct FioJob {
  std::size_t block = 0, depth = 1;
  unsigned threads = 1;
  bool sequential = true, read = true;
};

/// The rate in what fio printed (`--output-format=json`), in bytes per second. Throws Failure if there is none.
double fio_bytes_per_second(std::string_view text, bool read);
/// The name of the limit that a job measures.
std::string fio_limit(const FioJob&);
/// Runs fio for a second and returns its rate in bytes/s. Throws Failure, for example if fio is not installed.
double read_fio(const FioJob&, const File&);
/// Adds the bytes per second that fio moves between this file and host memory. The file exists and its data is on the
/// drive, so that fio's first reads do not compete with writes. Without fio (Debian package fio), the limit is left out
/// with a warning.
void add_fio_limit(LimitList&, const FioJob&, std::function<File()> file);

}  // namespace feedrate::storage
