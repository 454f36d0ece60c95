#pragma once
#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <hiredis/hiredis.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "experiments/harness/json.hpp"
#include "tests/support/temp_dir.hpp"

/// Helpers shared by the tests of the executable. They start it as users do, in a separate folder and without settings
/// in the environment. Every process that a test starts ends with the test.
namespace feedrate::cli_test {

using Words = std::vector<std::string>;
using Seconds = std::chrono::duration<double>;
namespace fs = std::filesystem;
using test::TempDir;

inline std::string from_environment(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : otherwise;
}
inline std::string executable() { return from_environment("FEEDRATE_EXECUTABLE", FEEDRATE_EXECUTABLE); }
/// The program built with the files of tests/example: a broker, experiments, and workloads that fail.
inline std::string with_additions() { return executable() + "_with_additions"; }
inline fs::path source_dir() { return from_environment("FEEDRATE_SOURCE_DIR", FEEDRATE_SOURCE_DIR); }

inline std::string read_text(const fs::path& file) {
  std::ostringstream all;
  all << std::ifstream(file, std::ios::binary).rdbuf();
  return all.str();
}
inline void write_text(const fs::path& file, const std::string& text) { std::ofstream(file, std::ios::binary) << text; }

/// Returns true as soon as `condition` holds, and false if it does not hold within two minutes. A busy machine may need
/// that long.
inline bool await(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + Seconds(120);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

/// Ids of running processes with `text` in their command line.
inline std::vector<pid_t> processes_naming(const std::string& text) {
  std::vector<pid_t> found;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != name.npos) continue;
    if (read_text(entry.path() / "cmdline").find(text) != std::string::npos) found.push_back(std::stoi(name));
  }
  return found;
}

using Environment = std::vector<std::pair<std::string, std::string>>;

/// A child process with its output in files. The destructor kills it if it is still running.
class Process {
 public:
  Process(Words command, const fs::path& folder, const fs::path& output, const Environment& environment = {})
      : out_(output.string() + ".out"), err_(output.string() + ".err") {
    std::vector<char*> raw;
    for (std::string& word : command) raw.push_back(word.data());
    raw.push_back(nullptr);
    const std::string out = out_.string(), err = err_.string(), in = folder.string();
    pid_ = fork();
    if (pid_ < 0) throw std::runtime_error("fork failed");
    if (pid_ == 0) {
      setpgid(0, 0);  // its own process group, like a job of a shell
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      const int to_out = open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
      const int to_err = open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
      dup2(open("/dev/null", O_RDONLY), STDIN_FILENO);
      dup2(to_out, STDOUT_FILENO);
      dup2(to_err, STDERR_FILENO);
      for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
      if (chdir(in.c_str()) != 0) _exit(126);
      execvp(raw[0], raw.data());
      _exit(127);
    }
  }
  Process(const Process&) = delete;
  ~Process() {
    if (ended()) return;
#ifdef FEEDRATE_COVERAGE  // a process writes its coverage counters only when it exits normally
    signal(SIGTERM);
    if (ends_within(Seconds(10)) != -1) return;
#endif
    ::kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }

  pid_t id() const { return pid_; }
  void signal(int number) const {
    if (!reaped_) ::kill(pid_, number);
  }
  /// Signals the process and its children in the same group, as Ctrl-C does.
  void signal_group(int number) const {
    if (!reaped_) ::kill(-pid_, number);
  }
  bool ended() {
    int status = 0;
    if (!reaped_ && waitpid(pid_, &status, WNOHANG) == pid_) {
      reaped_ = true;
      code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    return reaped_;
  }
  /// Waits for the process. Returns its exit code, 128 + n after signal n, or -1 if it still runs after two minutes.
  int wait() {
    return await([this] { return ended(); }) ? code_ : -1;
  }
  /// Returns the exit code, or -1 if the process does not end within `limit`, however busy the machine is.
  int ends_within(Seconds limit) {
    const auto deadline = std::chrono::steady_clock::now() + limit;
    while (!ended() && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return ended() ? code_ : -1;
  }
  std::string out() const { return read_text(out_); }
  std::string err() const { return read_text(err_); }

 private:
  fs::path out_, err_;
  pid_t pid_ = -1;
  bool reaped_ = false;
  int code_ = -1;
};

struct Outcome {
  int code;
  std::string out, err;
};

/// A folder to run `feedrate` in. Temporary files go to a subfolder, so that tests can detect leftovers.
class Workplace {
 public:
  /// `program`: an executable other than feedrate that has the same commands.
  explicit Workplace(std::string program = executable()) : program_(std::move(program)) {
    fs::create_directories(temporary());
  }

  /// Sets the program for all later starts.
  void use(std::string program) { program_ = std::move(program); }

  fs::path path() const { return folder_.path() / "w"; }
  fs::path operator/(const std::string& name) const { return path() / name; }
  fs::path temporary() const { return path() / ".t"; }
  std::string write(const std::string& name, const std::string& text) const {
    write_text(path() / name, text);
    return path() / name;
  }
  /// Names in the working folder except the temporary folder.
  std::vector<std::string> contents() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(path())) {
      if (entry.path() != temporary()) names.push_back(entry.path().filename());
    }
    std::sort(names.begin(), names.end());
    return names;
  }
  bool temporary_empty() const { return fs::is_empty(temporary()); }
  /// Running private servers that `feedrate` started here.
  std::vector<pid_t> private_servers() const { return processes_naming((temporary() / "feedrate-").string()); }
  /// Socket of a private server; empty if there is no private server.
  std::string private_socket() const {
    for (const auto& entry : fs::directory_iterator(temporary())) {
      if (fs::exists(entry.path() / "redis.sock")) return entry.path() / "redis.sock";
    }
    return "";
  }

  /// Makes all later starts read each limit once.
  void read_limits() { floor_rounds_ = "1"; }

  std::unique_ptr<Process> start(const Words& arguments, Environment environment = {}) {
    environment.emplace_back("FEEDRATE_KEEP_DISTURBED", "true");  // tests run on shared machines
    // Reading the limits occupies two cores for a second. Tests that need the limits call read_limits().
    if (std::find(arguments.begin(), arguments.end(), "--floor-rounds") == arguments.end()) {
      environment.emplace_back("FEEDRATE_FLOOR_ROUNDS", floor_rounds_);
    }
    // Settings in the caller's environment must not reach the tests, except the path of redis-server.
    Words command{"env", "TMPDIR=" + temporary().string()};
    for (char** variable = environ; *variable != nullptr; ++variable) {
      const std::string name(*variable, std::string(*variable).find('='));
      if (name.starts_with("FEEDRATE_") && name != "FEEDRATE_REDIS_SERVER")
        command.insert(command.begin() + 1, {"-u", name});
    }
    for (const auto& [name, value] : environment) command.push_back(name + "=" + value);
    command.push_back(program_);
    command.insert(command.end(), arguments.begin(), arguments.end());
    return std::make_unique<Process>(command, path(), folder_ / std::to_string(started_++));
  }
  Outcome run(const Words& arguments, const Environment& environment = {}) {
    const auto process = start(arguments, environment);
    const int code = process->wait();
    return {code, process->out(), process->err()};
  }

 private:
  std::string program_;
  TempDir folder_;
  unsigned started_ = 0;
  const char* floor_rounds_ = "0";
};

/// Rows of a JSONL file or of `--json` output. Throws if a line is not valid JSON, for example because it is cut off.
inline std::vector<Json> rows_of(const std::string& text) {
  std::vector<Json> rows;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) rows.push_back(Json::parse(line));
  return rows;
}
/// The same rows without those that describe a run.
inline std::vector<Json> measured_in(const std::string& text) {
  std::vector<Json> rows = rows_of(text);
  std::erase_if(rows, [](const Json& row) { return row.at("kind") == "run"; });
  return rows;
}
/// The last of these rows that describes a run.
inline Json run_in(const std::vector<Json>& rows) {
  const auto run = std::find_if(rows.rbegin(), rows.rend(), [](const Json& row) { return row.at("kind") == "run"; });
  return run == rows.rend() ? Json::object() : *run;
}
inline std::vector<Json> cells_of(const fs::path& file) {
  std::vector<Json> cells;
  for (Json& row : rows_of(read_text(file))) {
    if (row.at("kind") == "cell") cells.push_back(std::move(row));
  }
  return cells;
}

/// Checks that every message was received exactly once and none was corrupted.
inline void expect_clean(const Json& row) {
  const Json& counts = row.at("details").at("counts");
  EXPECT_GT(counts.at("sent"), 0) << row.at("params") << row.at("status") << row.at("reason");
  EXPECT_EQ(counts.at("sent"), counts.at("received")) << row.at("params");
  for (const char* wrong : {"lost", "duplicated", "corrupted"})
    EXPECT_EQ(counts.at(wrong), 0) << wrong << row.at("params");
}

/// A TCP port of this machine that is currently free.
inline int free_port() {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  bind(fd, reinterpret_cast<sockaddr*>(&address), size);
  getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  close(fd);
  return ntohs(address.sin_port);
}

inline std::string redis_program() { return from_environment("FEEDRATE_REDIS_SERVER", "redis-server"); }

inline bool have_redis() {
  TempDir folder;
  return Process({redis_program(), "--version"}, folder.path(), folder / "version").wait() == 0;
}
#define FEEDRATE_NEEDS_REDIS() \
  if (!feedrate::cli_test::have_redis()) GTEST_SKIP() << "redis-server is not available"

struct FreeReply {
  void operator()(redisReply* reply) const { freeReplyObject(reply); }
};
using Reply = std::unique_ptr<redisReply, FreeReply>;

/// A raw client of a redis-server on a Unix socket.
class RedisClient {
 public:
  /// Connects, and returns whether the server answers.
  bool connect(const std::string& socket, const std::string& password = "") {
    context_.reset(redisConnectUnix(socket.c_str()));
    if (!context_ || context_->err != 0) return false;
    if (!password.empty()) command({"AUTH", password});
    const Reply pong = command({"PING"});
    return pong && pong->type == REDIS_REPLY_STATUS;
  }
  Reply command(const Words& words) {
    std::vector<const char*> raw;
    std::vector<std::size_t> sizes;
    for (const auto& word : words) {
      raw.push_back(word.data());
      sizes.push_back(word.size());
    }
    return Reply(static_cast<redisReply*>(
        redisCommandArgv(context_.get(), static_cast<int>(raw.size()), raw.data(), sizes.data())));
  }
  long long integer(const Words& words) {
    const Reply reply = command(words);
    return reply && reply->type == REDIS_REPLY_INTEGER ? reply->integer : -1;
  }
  /// Number of times that clients have sent `command` (in lower case).
  long long calls_of(const std::string& command) {
    const Reply reply = this->command({"INFO", "commandstats"});
    const std::string text(reply ? reply->str : "", reply ? reply->len : 0), key = "cmdstat_" + command + ":calls=";
    const auto at = text.find(key);
    return at == text.npos ? 0 : std::stoll(text.substr(at + key.size()));
  }

 private:
  struct FreeContext {
    void operator()(redisContext* context) const { redisFree(context); }
  };
  std::unique_ptr<redisContext, FreeContext> context_;
};

/// A user's server: a redis-server on a Unix socket, which the destructor kills and removes. It is also a raw client of
/// this server.
class RedisServer : public RedisClient {
 public:
  explicit RedisServer(Words settings = {}, std::string password = "") : password_(std::move(password)) {
    command_ = {redis_program(), "--port", "0", "--unixsocket", socket(), "--dir", folder_.path(), "--save", ""};
    if (!password_.empty()) settings.insert(settings.end(), {"--requirepass", password_});
    command_.insert(command_.end(), settings.begin(), settings.end());
    start();
  }
  /// Kills the server and starts it again with the data that it has written.
  void kill_and_start() {
    process_->signal(SIGKILL);
    process_->wait();
    start();
  }
  std::string socket() const { return folder_ / "s"; }
  std::string url() const { return "unix://" + (password_.empty() ? "" : ":" + password_ + "@") + socket(); }
  Process& process() { return *process_; }

 private:
  void start() {
    process_ = std::make_unique<Process>(command_, folder_.path(), folder_ / "redis");
    bool answers = false;
    if (!await([&] { return (answers = connect(socket(), password_)) || process_->ended(); }) || !answers)
      throw std::runtime_error("redis-server: " + process_->out());
  }

  TempDir folder_;
  std::string password_;
  Words command_;
  std::unique_ptr<Process> process_;
};

}  // namespace feedrate::cli_test
