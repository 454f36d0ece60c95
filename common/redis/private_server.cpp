#include "common/redis/private_server.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>
#include <utility>
#include <vector>

#include "common/clock.hpp"
#include "common/error.hpp"
#include "common/own_executable.hpp"
#include "common/redis/connection.hpp"
#include "common/threads/threads.hpp"

namespace feedrate::redis {
namespace {

constexpr std::uint64_t kStartTimeoutNs = 10'000'000'000;

std::string read_file(const std::filesystem::path& path) {
  std::ostringstream all;
  all << std::ifstream(path).rdbuf();
  return all.str();
}

}  // namespace

std::string find_redis_server() {
  if (const char* named = std::getenv("FEEDRATE_REDIS_SERVER"); named != nullptr && *named != '\0') return named;
  std::istringstream path(std::getenv("PATH") != nullptr ? std::getenv("PATH") : "/usr/bin");
  for (std::string folder; std::getline(path, folder, ':');) {
    const auto candidate = std::filesystem::path(folder) / "redis-server";
    if (access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return "";
}

PrivateServer::PrivateServer() {
  const std::string program = find_redis_server();
  if (program.empty()) {
    throw BadInput("--redis", "", "a URL, because there is no redis-server on the PATH for a private server");
  }
  const auto log = folder_ / "redis.log";
  // Uses several I/O threads only if there are spare cores: they relieve the single command thread of socket copies.
  const std::string io_threads = available_cores() >= 8 ? "4" : "1";
  const std::pair<const char*, std::string> settings[] = {{"--port", "0"},
                                                          {"--unixsocket", socket().string()},
                                                          {"--unixsocketperm", "700"},
                                                          {"--dir", folder_.path().string()},
                                                          {"--save", ""},
                                                          {"--appendonly", "no"},
                                                          {"--logfile", log.string()},
                                                          {"--daemonize", "no"},
                                                          {"--io-threads", io_threads},
                                                          {"--io-threads-do-reads", "yes"},
                                                          {"--proto-max-bulk-len", "1gb"}};
  std::vector<std::string> words{program};
  for (const auto& [name, value] : settings) words.insert(words.end(), {name, value});
  const std::vector<char*> raw = raw_words(words);
  const pid_t parent = getpid();
  child_ = fork();
  if (child_ < 0) throw Failure("cannot start a private Redis server: fork failed");
  if (child_ == 0) {
    // A separate process group, so that Ctrl-C ends the sweep in order and does not kill the server. The server is
    // killed when this process dies.
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    const int nowhere = open("/dev/null", O_RDWR);
    dup2(nowhere, STDIN_FILENO);
    dup2(nowhere, STDOUT_FILENO);
    dup2(nowhere, STDERR_FILENO);
    execv(program.c_str(), raw.data());
    _exit(127);
  }
  const auto deadline = now_ns() + kStartTimeoutNs;
  while (true) {
    try {
      Connection probe(url());
      return;
    } catch (const Failure& failure) {
      if (!alive() || now_ns() > deadline) {
        const std::string why = read_file(log);
        stop();
        throw Failure(fmt::format("{} did not start: {}\n{}", program, failure.what(), why));
      }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

PrivateServer::~PrivateServer() { stop(); }

bool PrivateServer::alive() {
  if (child_ > 0 && waitpid(child_, nullptr, WNOHANG) == child_) child_ = -1;
  return child_ > 0;
}

void PrivateServer::stop() {
  if (child_ <= 0) return;
  kill(child_, SIGKILL);  // it has no data worth saving
  waitpid(child_, nullptr, 0);
  child_ = -1;
}

}  // namespace feedrate::redis
