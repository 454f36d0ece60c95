#pragma once
#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>

namespace feedrate::test {

/// A file system in memory, mounted with FUSE, whose requests fail as a test demands. A child process serves it, so
/// that threads which wait for it can always be released: it ends with the test. The mount is visible only to the
/// calling thread and to threads that this thread starts later.
class FaultyFiles {
 public:
  struct Faults {
    std::atomic<int> read_error{0}, write_error{0}, sync_error{0};  ///< errno values; 0: none
    std::atomic<std::uint64_t> begin{0};                            ///< offset of the first byte that fails
    std::atomic<std::uint64_t> end{std::numeric_limits<std::uint64_t>::max()};
    std::atomic<bool> holds_reads{false};  ///< reads do not return until this is false again
    /// Reads do not use the page cache, where a short read would mean the end of the file. For files opened later.
    std::atomic<bool> past_cache{false};
    std::atomic<unsigned> interrupts{0};     ///< every n-th read returns EINTR; 0: none
    std::atomic<unsigned> longest_read{0};   ///< bytes that a read returns at most; 0: all
    std::atomic<std::uint64_t> injected{0};  ///< number of faults so far
  };

  /// Throws std::system_error if this process may not mount a file system.
  explicit FaultyFiles(std::filesystem::path folder);
  ~FaultyFiles();
  FaultyFiles(const FaultyFiles&) = delete;
  Faults& faults() { return *faults_; }

 private:
  std::filesystem::path folder_;
  Faults* faults_;  // memory shared with the child
  pid_t server_ = -1;
};

}  // namespace feedrate::test
