#pragma once
#include <sys/types.h>

#include <string>
#include <vector>

/// Starts this executable again as a separate process.
namespace feedrate {

/// The words before this executable's name on the process's command line. They belong to the dynamic loader if it
/// started this executable, as in bundles on a host with an older C library.
std::vector<std::string> launcher_words();

/// Converts words to the argv array that exec expects. The pointers refer to the caller's `words`.
std::vector<char*> raw_words(std::vector<std::string>& words);

inline constexpr int kOwnSocket = 3;

struct OwnProcess {
  int socket = -1;       ///< a descriptor that becomes kOwnSocket in the new process; -1: none
  std::string log = {};  ///< a file for its stdout and stderr; empty: inherits this process's
};

/// Starts this executable with `arguments` but without the FEEDRATE_… variables, which belong to this run. Throws
/// Failure, including if this process is not the feedrate executable (because another program uses a library).
pid_t start_feedrate(const std::vector<std::string>& arguments, const OwnProcess&);

/// Waits until the process ends; kills it if it has not ended after ten seconds.
void await_end(pid_t process);

}  // namespace feedrate
