#include "experiments/harness/sweep/ab.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstring>
#include <fstream>
#include <random>
#include <sstream>
#include <thread>

#include "common/error.hpp"
#include "common/own_executable.hpp"
#include "experiments/harness/measure/session.hpp"
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
  if (child_ > 0) {
    constexpr auto kPatience = std::chrono::seconds(60), kInterrupted = std::chrono::seconds(5);
    const auto begin = std::chrono::steady_clock::now();
    while (waitpid(child_, &status, WNOHANG) == 0) {  // it writes its rows
      const auto waited = std::chrono::steady_clock::now() - begin;
      if (waited > (interrupted() ? kInterrupted : kPatience)) kill(child_, SIGKILL);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
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
  const std::string killed = WIFSIGNALED(status) ? fmt::format("killed by signal {}", WTERMSIG(status)) : "";
  const std::string why = !killed.empty() ? killed : !last.empty() ? last : "its log is empty";
  throw Failure(fmt::format("side {} ended: {} ({}; its rows up to then are kept)", name_, why, log_.string()));
}

Json Side::read() {
  std::string line;
  if (std::istream answers(&answers_); !std::getline(answers, line)) report_end();
  Json answer = Json::parse(line, nullptr, false);
  if (answer.is_discarded()) throw Failure(fmt::format("side {}: invalid answer '{}'", name_, line));
  return answer;
}

void Side::write(const Json& request) {
  std::ostream requests(&requests_);
  requests << request.dump() << std::endl;
  if (!requests) report_end();
}

AbPlan plan_ab(const std::vector<std::string>& variants, double seconds, double visit, unsigned starts) {
  constexpr double kStartSeconds = 1.5;  // for both processes together
  constexpr double kUsefulVisit = 0.8;   // another start says more than further slices of this one
  constexpr unsigned kMostStarts = 200;
  const unsigned least = starts != 0 ? starts : kLeastStarts;
  const double per_start = seconds / least - kStartSeconds;
  if (per_start < visit) {
    throw BadInput(
        "--minutes", fmt::format("{:.3g}", seconds / 60),
        fmt::format("at least {:.2g}, for {} starts with one point", least * (kStartSeconds + visit) / 60, least));
  }
  const auto most = static_cast<std::size_t>(per_start / visit);
  std::map<std::string, std::vector<std::uint64_t>> left;  // points by variant, not chosen yet
  for (std::size_t i = 0; i < variants.size(); ++i) left[variants[i]].push_back(i);
  AbPlan plan;
  for (std::size_t turn = 0; plan.points.size() < std::min(most, variants.size()); ++turn) {
    for (const auto& [variant, points] : left) {
      if (turn < points.size() && plan.points.size() < most) plan.points.push_back(points[turn]);
    }
  }
  std::ranges::sort(plan.points);
  const double useful = std::max(visit, kUsefulVisit) * static_cast<double>(plan.points.size()) + kStartSeconds;
  plan.starts = starts != 0 ? starts : std::clamp(static_cast<unsigned>(seconds / useful), least, kMostStarts);
  plan.seconds = seconds;
  return plan;
}

void measure_slices(const AbPlan& plan, const AbCalls& calls) {
  std::mt19937_64 random(plan.seed);
  std::vector<std::uint64_t> order = plan.points;
  for (unsigned start = 0; start < plan.starts && !calls.stop(); ++start) {
    calls.start(start);
    std::shuffle(order.begin(), order.end(), random);
    const double end = plan.seconds * (start + 1) / plan.starts;
    for (std::size_t i = 0; i < order.size() && !calls.stop(); ++i) {
      const double began = calls.elapsed();
      const double visit_ends = began + (end - began) / static_cast<double>(order.size() - i);
      double longest = 0;  // time of a block
      bool possible = true;
      for (unsigned block = 0; possible && !calls.stop(); ++block) {
        const double block_began = calls.elapsed();
        if (block >= kLeastBlocks && block_began + longest > visit_ends) break;
        const char first = random() % 2 == 0 ? 'a' : 'b', second = first == 'a' ? 'b' : 'a';
        const char sides[] = {first, second, second, first};
        for (unsigned place = 0; possible && place < std::size(sides) && !calls.stop(); ++place) {
          possible = calls.slice(sides[place], order[i], block, place);
        }
        longest = std::max(longest, calls.elapsed() - block_began);
      }
      calls.end(order[i]);
    }
  }
}

}  // namespace feedrate
