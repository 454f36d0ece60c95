#pragma once
#include <sys/types.h>

#include <string>
#include <vector>

/// This executable, started again as a process of its own.
namespace feedrate {

/// The words of this process's command line in front of its own: the dynamic loader's, where that was started to start
/// this executable, as bundles do on a host with an older C library.
std::vector<std::string> launcher_words();

/// As exec takes words; they stay with the caller.
std::vector<char*> raw_words(std::vector<std::string>& words);

inline constexpr int kOwnSocket = 3;

struct OwnProcess {
  int socket = -1;       ///< a descriptor that becomes kOwnSocket there; -1: none
  std::string log = {};  ///< a file for what it writes to stdout and stderr; empty: where this process writes
};

/// Starts this executable with these arguments, and without the FEEDRATE_… variables, which are this run's. Throws
/// Failure; also where this is not the executable feedrate, as in a library.
pid_t start_own(const std::vector<std::string>& arguments, const OwnProcess&);

/// Waits for its end; kills it where it does not end within some seconds.
void await_end(pid_t process);

}  // namespace feedrate
