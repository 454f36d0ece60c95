#include "experiments/daemons/daemon.hpp"

#include <fmt/format.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/spdlog.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <memory>
#include <string>
#include <thread>

#include "common/error.hpp"
#include "common/own_executable.hpp"
#include "experiments/harness/json.hpp"
#include "experiments/harness/measure/session.hpp"

namespace feedrate {
namespace {

using Seconds = std::chrono::duration<double>;
constexpr double kFirstPause = 0.1, kLongestPause = 10;
constexpr double kLongEnough = 30;  // seconds; a child that lived longer resets the pause
constexpr auto kPollInterval = std::chrono::milliseconds(10);

pid_t start(std::vector<std::string>& words) {
  const std::vector<char*> raw = raw_words(words);
  const pid_t parent = getpid(), child = fork();
  if (child < 0) throw Failure(fmt::format("--supervise: fork: {}", std::strerror(errno)));
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);  // without this process, the child would not be restarted
    if (getppid() == parent) execv("/proc/self/exe", raw.data());
    _exit(127);
  }
  return child;
}

/// Waits until the child ends and returns its status. Forwards an interrupt repeatedly, because a child that is just
/// starting may miss the signal.
int wait_for(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (interrupted()) kill(child, SIGTERM);
    std::this_thread::sleep_for(kPollInterval);
  }
  return status;
}

/// The message as a JSON string; bytes that are not UTF-8 are escaped.
class JsonText final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&, spdlog::memory_buf_t& to) override {
    const std::string text = dumped(std::string(message.payload.begin(), message.payload.end()));
    to.append(text.data(), text.data() + text.size());
  }
  std::unique_ptr<custom_flag_formatter> clone() const override { return std::make_unique<JsonText>(); }
};

}  // namespace

int supervise(std::vector<std::string> arguments) {
  std::erase_if(arguments, [](const std::string& word) { return word.starts_with("--supervise"); });
  std::vector<std::string> words = launcher_words();
  words.insert(words.end(), arguments.begin(), arguments.end());
  words.emplace_back("--supervise=false");  // overrides a config file
  std::signal(SIGCHLD, SIG_DFL);            // otherwise waitpid could not return the child's status
  double pause = kFirstPause;
  for (bool first = true;; first = false) {
    const auto begin = std::chrono::steady_clock::now();
    const int status = wait_for(start(words));
    const bool signalled = WIFSIGNALED(status);
    const int code = signalled ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    // Exit code 2 means bad input at the first start; later it means that the server cannot be reached.
    if (interrupted() && signalled && WTERMSIG(status) == SIGTERM)
      return 0;  // the child had not installed its signal handler yet
    if (interrupted() || (!signalled && code != 1 && (first || code != 2))) return code;
    if (Seconds(std::chrono::steady_clock::now() - begin).count() > kLongEnough) pause = kFirstPause;
    spdlog::error("the worker ended {}; restarting it in {:.2g} s",
                  signalled ? fmt::format("by signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)))
                            : fmt::format("with exit code {}", code),
                  pause);
    for (auto until = std::chrono::steady_clock::now() + Seconds(pause);
         !interrupted() && std::chrono::steady_clock::now() < until;) {
      std::this_thread::sleep_for(kPollInterval);
    }
    if (interrupted()) return 0;  // no child is running; another worker takes over its tasks
    pause = std::min(2 * pause, kLongestPause);
  }
}

void log_as_json() {
  auto formatter = std::make_unique<spdlog::pattern_formatter>(spdlog::pattern_time_type::utc);
  formatter->add_flag<JsonText>('*').set_pattern(
      R"({"time":"%Y-%m-%dT%H:%M:%S.%eZ","level":"%l","process":%P,"message":%*})");
  spdlog::set_formatter(std::move(formatter));
}

}  // namespace feedrate
