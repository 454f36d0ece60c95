#include "common/own_executable.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fstream>
#include <string_view>
#include <thread>

#include "common/error.hpp"

namespace feedrate {

std::vector<std::string> launcher_words() {
  std::vector<std::string> all;
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  for (std::string word; std::getline(file, word, '\0') && word != program_invocation_name;) all.push_back(word);
  return all;
}

std::vector<char*> raw_words(std::vector<std::string>& words) {
  std::vector<char*> raw;
  raw.reserve(words.size() + 1);
  for (std::string& word : words) raw.push_back(word.data());
  raw.push_back(nullptr);
  return raw;
}

pid_t start_feedrate(const std::vector<std::string>& arguments, const OwnProcess& how) {
  const std::string_view name = program_invocation_short_name;
  if (name != "feedrate" && name != "feedrate_full" && name != "feedrate_with_additions") {
    throw Failure("only the feedrate executable can start another feedrate process");
  }
  std::vector<std::string> words = launcher_words();
  words.emplace_back(program_invocation_name);
  words.insert(words.end(), arguments.begin(), arguments.end());
  const std::vector<char*> raw = raw_words(words);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (how.socket >= 0) posix_spawn_file_actions_adddup2(&actions, how.socket, kOwnSocket);
  if (!how.log.empty()) {
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, how.log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  }
  std::vector<char*> variables;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (!std::string_view(*variable).starts_with("FEEDRATE_")) variables.push_back(*variable);
  }
  variables.push_back(nullptr);
  pid_t process = -1;
  const int error = posix_spawn(&process, "/proc/self/exe", &actions, nullptr, raw.data(), variables.data());
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) throw Failure(fmt::format("cannot start {}: {}", program_invocation_name, std::strerror(error)));
  return process;
}

void await_end(pid_t process) {
  constexpr std::chrono::milliseconds kPatience{10'000}, kPollInterval{1};
  const auto ended = [&](int flags) {
    const pid_t found = waitpid(process, nullptr, flags);
    return found == process || (found < 0 && errno != EINTR);
  };
  for (const auto begin = std::chrono::steady_clock::now(); std::chrono::steady_clock::now() - begin < kPatience;) {
    if (ended(WNOHANG)) return;
    std::this_thread::sleep_for(kPollInterval);
  }
  kill(process, SIGKILL);
  while (!ended(0)) {
  }
}

}  // namespace feedrate
