#include "experiments/cli/standard_streams.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <iostream>

#include "experiments/harness/say.hpp"

namespace feedrate {

void open_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(stream, F_GETFD) != -1 || errno != EBADF) continue;
    [[maybe_unused]] const int opened = open("/dev/null", O_RDWR);  // the lowest free number, which is `stream`
  }
  // Failed writes return an error instead. The limit on file size also applies to a store's memory (memfds).
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
}

int exit_code_after_output(int code) {
  errno = 0;
  std::cout.flush();
  const bool written = std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && std::cout.good();
  if (written) return code;
  if (errno != EPIPE) say("feedrate: stdout: {}\n", errno != 0 ? std::strerror(errno) : "could not write all output");
  return code == 0 ? 1 : code;
}

}  // namespace feedrate
