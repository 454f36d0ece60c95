#include "experiments/harness/load/offer.hpp"

#include <fmt/format.h>

#include <array>
#include <numeric>
#include <utility>
#include <vector>

#include "common/clock.hpp"
#include "common/error.hpp"
#include "experiments/harness/load/behind.hpp"

namespace feedrate {
namespace {

constexpr std::uint64_t kMillisecond = 1'000'000;  // ns, between two readings of the backlog

/// One phase: what is under way, and what has been seen.
class Phase {
 public:
  Phase(Endpoint& endpoint, const Offering& offering)
      : endpoint_(endpoint), offering_(offering), requests_(offering.window), free_(offering.window) {
    std::iota(free_.rbegin(), free_.rend(), std::size_t{0});
  }

  LoadResult run() {
    begin_ = counted_from_ = last_end_ = now_ns();
    Behind behind(begin_);
    Backoff backoff;
    bool blocked = false;
    std::uint64_t blocked_ns = 0, polls = 0, polling_ns = 0;
    while (!over()) {
      const std::uint64_t now = now_ns();
      if (collect()) backoff.reset();
      read_backlog(now);
      if (!is_due(now)) {
        if (offering_.schedule != nullptr && submitted_ < offering_.schedule->size()) {
          wait_for_due(begin_ + offering_.schedule->due_ns[submitted_] - now, backoff);
          const std::uint64_t after = now_ns();
          ++polls;
          polling_ns += after - now;
          behind.caught_up(after);
        }
        continue;
      }
      if (free_.empty() || !submit(now, behind)) {
        blocked = true;
        behind.wait(now);
        backoff.wait();
        continue;
      }
      if (std::exchange(blocked, false)) blocked_ns += behind.go_on(now_ns());
    }
    const std::uint64_t ended = now_ns();
    if (blocked) blocked_ns += behind.go_on(ended);
    while (free_.size() < requests_.size()) {
      if (!collect()) backoff.wait();
    }
    result_.began_ns = begin_;
    result_.seconds = static_cast<double>(std::min(last_end_, ended) - counted_from_) / 1e9;
    if (offering_.schedule == nullptr) return std::move(result_);
    result_.seconds = offering_.schedule->seconds;
    result_.due = offering_.schedule->size();
    result_.unsent = result_.due - submitted_;
    result_.blocked_share = static_cast<double>(blocked_ns) / static_cast<double>(ended - begin_);
    result_.granularity_ns = polls == 0 ? 0 : static_cast<double>(polling_ns) / static_cast<double>(polls);
    result_.backlog = backlog_of(backlog_, result_.seconds);
    return std::move(result_);
  }

 private:
  struct Request {
    std::uint64_t number = 0, due_ns = 0, submitted_ns = 0, own_lag_ns = 0;
  };
  bool open() const { return offering_.schedule != nullptr; }
  std::uint64_t end_ns() const {
    return begin_ + static_cast<std::uint64_t>(1e9 * (open() ? offering_.schedule->seconds : offering_.seconds));
  }
  bool over() const {
    if (offering_.interrupted()) return true;
    return now_ns() >= end_ns() || (open() && submitted_ == offering_.schedule->size());
  }
  bool is_due(std::uint64_t now) const {
    return !open() ||
           (submitted_ < offering_.schedule->size() && begin_ + offering_.schedule->due_ns[submitted_] <= now);
  }
  bool submit(std::uint64_t now, const Behind& behind) {
    const std::size_t slot = free_.back();
    Request& request = requests_[slot];
    request = {submitted_, now, now, 0};
    if (open()) {
      request.due_ns = begin_ + offering_.schedule->due_ns[submitted_];
      const std::uint64_t lag = now - request.due_ns;
      request.own_lag_ns = static_cast<std::uint64_t>(behind.own_share(now) * static_cast<double>(lag));
    }
    if (!endpoint_.submit(slot, submitted_)) return false;
    if (open()) {
      result_.send_lag.record(now - request.due_ns);
      result_.own_lag.record(request.own_lag_ns);
    }
    free_.pop_back();
    ++submitted_;
    return true;
  }
  /// Whether any request has ended.
  bool collect() {
    std::array<std::size_t, 64> ended{};
    const std::size_t count = endpoint_.poll(ended);
    const std::uint64_t now = now_ns();
    if (count == 0) {
      const double silent = static_cast<double>(now - last_end_) / 1e9;
      if (free_.size() < requests_.size() && silent > offering_.watchdog_seconds)
        throw Failure(fmt::format("no request has ended for {:.1f} s", silent));
      if (free_.size() == requests_.size()) last_end_ = now;
      return false;
    }
    for (const std::size_t slot : std::span(ended).first(count)) {
      free_.push_back(slot);
      ++ended_;
      record(requests_[slot], now);
    }
    last_end_ = now;
    return true;
  }
  void record(const Request& request, std::uint64_t now) {
    if (!open()) {
      if (ended_ <= offering_.window) {  // they met an emptier endpoint than all that follow
        counted_from_ = now;
        return;
      }
      if (now > end_ns()) return;
      ++result_.received;
      return result_.latency.record(now - request.submitted_ns);
    }
    ++result_.received;
    const std::uint64_t response = now - request.due_ns;
    result_.latency.record(response);
    result_.without_own_lag.record(response - request.own_lag_ns);
    result_.service.record(now - request.submitted_ns);
    if (const auto& priorities = offering_.schedule->priorities; !priorities.empty()) {
      result_.by_priority[priorities[request.number]].record(response);
    }
  }
  void read_backlog(std::uint64_t now) {
    if (!open() || now - begin_ < (backlog_.size() + 1) * kMillisecond) return;
    const std::uint64_t due = offering_.schedule->due_until(now - begin_);
    while (now - begin_ >= (backlog_.size() + 1) * kMillisecond) {
      backlog_.push_back(static_cast<double>(due) - static_cast<double>(ended_));
    }
  }

  Endpoint& endpoint_;
  const Offering& offering_;
  std::vector<Request> requests_;  // by slot
  std::vector<std::size_t> free_;  // slots
  std::uint64_t begin_ = 0, counted_from_ = 0, last_end_ = 0, submitted_ = 0, ended_ = 0;
  std::vector<double> backlog_;
  LoadResult result_;
};

}  // namespace

LoadResult offer(Endpoint& endpoint, const Offering& offering) { return Phase(endpoint, offering).run(); }

}  // namespace feedrate
