#include "experiments/daemons/supervise.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <thread>

#include "common/error.hpp"
#include "common/own_executable.hpp"
#include "experiments/harness/measure/session.hpp"

namespace feedrate {
namespace {

using Seconds = std::chrono::duration<double>;
constexpr double kFirstPause = 0.1, kLongestPause = 10;
constexpr double kLongEnough = 30;  // a child that lived so long begins with the first pause again
constexpr auto kLook = std::chrono::milliseconds(10);

pid_t start(std::vector<std::string>& words) {
  const std::vector<char*> raw = raw_words(words);
  const pid_t parent = getpid(), child = fork();
  if (child < 0) throw Failure(fmt::format("--supervise: fork: {}", std::strerror(errno)));
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);  // nobody would start it again
    if (getppid() == parent) execv("/proc/self/exe", raw.data());
    _exit(127);
  }
  return child;
}

/// Waits for the child's end and returns its status; hands on the user's wish to end, again and again, because a child
/// that is only just starting does not hear it.
int wait_for(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (interrupted()) kill(child, SIGTERM);
    std::this_thread::sleep_for(kLook);
  }
  return status;
}

}  // namespace

int supervise(const std::vector<std::string>& child) {
  std::vector<std::string> words = launcher_words();
  words.insert(words.end(), child.begin(), child.end());
  std::signal(SIGCHLD, SIG_DFL);  // or the child's end could not be asked for
  double pause = kFirstPause;
  for (bool first = true;; first = false) {
    const auto begin = std::chrono::steady_clock::now();
    const int status = wait_for(start(words));
    const bool signalled = WIFSIGNALED(status);
    const int code = signalled ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    // What was asked wrongly is wrong at the first start; later it is a server that can't be reached.
    if (interrupted() && signalled && WTERMSIG(status) == SIGTERM) return 0;  // it had not begun to listen
    if (interrupted() || (!signalled && code != 1 && (first || code != 2))) return code;
    if (Seconds(std::chrono::steady_clock::now() - begin).count() > kLongEnough) pause = kFirstPause;
    spdlog::error("the worker ended {}; started again in {:.2g} s",
                  signalled ? fmt::format("by signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)))
                            : fmt::format("with exit code {}", code),
                  pause);
    for (auto until = std::chrono::steady_clock::now() + Seconds(pause);
         !interrupted() && std::chrono::steady_clock::now() < until;) {
      std::this_thread::sleep_for(kLook);
    }
    if (interrupted()) return 0;  // nothing runs, as was wanted; what it held is taken over
    pause = std::min(2 * pause, kLongestPause);
  }
}

}  // namespace feedrate
