#include "experiments/harness/sweep/ab.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <numeric>
#include <random>
#include <sstream>

#include "common/error.hpp"
#include "common/own_executable.hpp"
#include "experiments/harness/say.hpp"

namespace feedrate {
namespace {

constexpr int kInvalidInput = 2;  // exit code

struct Pipe {
  Pipe() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) throw Failure(fmt::format("pipe: {}", std::strerror(errno)));
    read = ends[0], write = ends[1];
  }
  int read = -1, write = -1;
};

}  // namespace

Side::Side(std::string name, std::vector<std::string> words, const std::filesystem::path& log)
    : name_(std::move(name)), log_(log) {
  const Pipe questions, answers;
  const int out = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (out < 0) throw Failure(fmt::format("{}: {}", log.string(), std::strerror(errno)));
  const std::vector<char*> raw = raw_words(words);
  const pid_t parent = getpid();
  child_ = fork();
  if (child_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);  // the side ends with this process, after writing its rows
    if (getppid() != parent) _exit(1);
    dup2(questions.read, STDIN_FILENO);
    dup2(answers.write, STDOUT_FILENO);
    dup2(out, STDERR_FILENO);
    execv(raw[0], raw.data());
    say("{}: {}\n", raw[0], std::strerror(errno));
    _exit(127);
  }
  ::close(out);
  ::close(questions.read);
  ::close(answers.write);
  requests_ = FileBuffer(questions.write, std::ios::out);
  answers_ = FileBuffer(answers.read, std::ios::in);
  if (child_ < 0) throw Failure("could not fork a process for a side of the comparison");
}

Side::~Side() { close(); }

int Side::close() {
  requests_.close();
  answers_.close();
  int status = 0;
  if (child_ > 0) waitpid(child_, &status, 0);
  child_ = -1;
  return status;
}

void Side::report_end() {
  const int status = close();
  std::ifstream file(log_);
  std::string last;
  for (std::string line; std::getline(file, line);) {
    if (!line.empty()) last = line;
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == kInvalidInput) {
    constexpr std::string_view kProgram = "feedrate: ";
    throw BadInput(fmt::format("side {}: {}", name_, last.substr(last.starts_with(kProgram) ? kProgram.size() : 0)));
  }
  throw Failure(fmt::format("side {} ended: {} ({})", name_, last.empty() ? "its log is empty" : last, log_.string()));
}

Json Side::read() {
  std::string line;
  if (std::istream answers(&answers_); !std::getline(answers, line)) report_end();
  Json answer = Json::parse(line, nullptr, false);
  if (answer.is_discarded()) throw Failure(fmt::format("side {}: invalid answer '{}'", name_, line));
  return answer;
}

void Side::ask(std::uint64_t point, std::uint64_t pair, std::uint64_t start) {
  std::ostream requests(&requests_);
  requests << Json{{"point", point}, {"pair", pair}, {"start", start}}.dump() << std::endl;
  if (!requests) report_end();
}

void measure_pairs(
    const PairPlan& plan, const std::function<void(std::uint64_t start)>& start,
    const std::function<Json(char side, std::uint64_t point, std::uint64_t pair)>& ask,
    const std::function<void(std::uint64_t point, std::uint64_t pair, const Json& a, const Json& b)>& tell,
    const std::function<bool()>& stop) {
  std::mt19937_64 random(plan.seed);
  std::vector<std::uint64_t> order(plan.points);
  std::iota(order.begin(), order.end(), 0);
  for (std::uint64_t pair = 0; pair < plan.pairs; pair += 2) {
    if (stop()) return;
    if (pair % plan.per_start == 0) start(pair / plan.per_start);
    std::shuffle(order.begin(), order.end(), random);
    for (const std::uint64_t point : order) {
      for (const bool a_first : {true, false}) {
        const std::uint64_t number = pair + (a_first ? 0 : 1);
        const char sides[] = {a_first ? 'a' : 'b', a_first ? 'b' : 'a'};
        Json answers[2];
        for (int i = 0; i < 2; ++i) {
          if (stop()) return;
          answers[i] = ask(sides[i], point, number);
        }
        tell(point, number, answers[a_first ? 0 : 1], answers[a_first ? 1 : 0]);
      }
    }
  }
}

}  // namespace feedrate
