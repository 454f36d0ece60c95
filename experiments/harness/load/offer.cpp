#include "experiments/harness/load/offer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "common/clock.hpp"
#include "common/error.hpp"
#include "experiments/harness/load/lag_account.hpp"
#include "experiments/harness/measure/statistics.hpp"

namespace feedrate {
namespace {

constexpr std::uint64_t kMillisecond = 1'000'000;  // ns between two readings of the backlog

/// State of one phase: requests in flight and results so far.
class Phase {
 public:
  Phase(Endpoint& endpoint, const Offering& offering)
      : endpoint_(endpoint), offering_(offering), requests_(offering.window), free_(offering.window) {
    std::iota(free_.rbegin(), free_.rend(), std::size_t{0});
  }

  LoadResult run() {
    result_.began_ns = begin_ = last_end_ = now_ns();
    result_.ramped = open();
    LagAccount behind(begin_);
    Backoff backoff;
    std::uint64_t polls = 0, polling_ns = 0;
    while (!over(now_ns())) {
      behind.wait(now_ns());  // the endpoint's part: submitting, polling and lack of room
      if (collect()) backoff.reset();
      const std::uint64_t now = now_ns();
      read_backlog(now);
      if (!is_due(now)) {
        await_next(now, backoff);
        const std::uint64_t after = now_ns();
        ++polls;
        polling_ns += after - now;
        behind.caught_up(after);
      } else if (!free_.empty()) {
        behind.go_on(now);
        if (!submit(now, behind)) wait_for_room(now, backoff);
      } else {
        wait_for_room(now, backoff);
      }
    }
    const std::uint64_t ended = now_ns();
    has_room(ended);
    over_ = true;
    while (free_.size() < requests_.size()) {
      if (!collect()) backoff.wait();
    }
    if (!open()) {
      result_.seconds = result_.ramped ? static_cast<double>(ended - counted_from_) / 1e9 : 0;
      return std::move(result_);
    }
    result_.seconds = offering_.schedule->seconds;
    result_.due = offering_.schedule->size();
    result_.unsent = result_.due - submitted_;
    result_.blocked_share = static_cast<double>(blocked_ns_) / static_cast<double>(ended - begin_);
    result_.granularity_ns = polls == 0 ? 0 : static_cast<double>(polling_ns) / static_cast<double>(polls);
    result_.backlog = backlog_of(backlog_, result_.seconds);
    return std::move(result_);
  }

 private:
  struct Request {
    std::uint64_t number = 0, due_ns = 0, submitted_ns = 0, own_lag_ns = 0;
  };
  bool open() const { return offering_.schedule != nullptr; }
  bool all_submitted() const { return open() && submitted_ == offering_.schedule->size(); }
  std::uint64_t due_ns() const { return begin_ + offering_.schedule->due_ns[submitted_]; }
  /// End of the phase or, for a closed load whose first window has not ended, the deadline of that window.
  std::uint64_t end_ns() const {
    const auto ns = [](double seconds) { return static_cast<std::uint64_t>(1e9 * seconds); };
    if (open()) return begin_ + ns(offering_.schedule->seconds);
    return result_.ramped ? counted_from_ + ns(offering_.seconds) : begin_ + ns(kLongestRamp * offering_.seconds);
  }
  bool over(std::uint64_t now) const {
    if (offering_.interrupted()) return true;
    // Requests that are already due are still submitted for a while, because their lateness is being measured.
    const std::uint64_t grace = open() && !all_submitted() ? static_cast<std::uint64_t>(kGraceSeconds * 1e9) : 0;
    return now >= end_ns() + grace;
  }
  bool is_due(std::uint64_t now) const { return !open() || (!all_submitted() && due_ns() <= now); }
  void await_next(std::uint64_t now, Backoff& backoff) const {
    // Requests in flight may end at any moment.
    if (all_submitted() || free_.size() < requests_.size()) return backoff.wait();
    wait_for_due(due_ns() - now, backoff);
  }
  void wait_for_room(std::uint64_t now, Backoff& backoff) {
    if (blocked_since_ == 0) blocked_since_ = now;
    backoff.wait();
  }
  void has_room(std::uint64_t now) {
    if (blocked_since_ != 0) blocked_ns_ += now - blocked_since_;
    blocked_since_ = 0;
  }
  bool submit(std::uint64_t now, LagAccount& behind) {
    const std::size_t slot = free_.back();
    Request& request = requests_[slot];
    request = {submitted_, now, now, 0};
    if (open()) {
      request.due_ns = due_ns();
      const auto lag = static_cast<double>(now - request.due_ns);
      request.own_lag_ns = static_cast<std::uint64_t>(behind.own_share(now) * lag);
    }
    behind.wait(now);
    if (!endpoint_.submit(slot, submitted_)) return false;
    has_room(now);
    if (open()) {
      result_.send_lag.record(now - request.due_ns);
      result_.own_lag.record(request.own_lag_ns);
    }
    free_.pop_back();
    ++submitted_;
    return true;
  }
  /// Polls the endpoint; returns whether any request has ended.
  bool collect() {
    std::array<std::size_t, 64> ended{};
    const std::size_t count = endpoint_.poll(ended);
    const std::uint64_t now = now_ns();
    if (count != 0 || free_.size() == requests_.size()) last_end_ = now;
    const double silent = static_cast<double>(now - last_end_) / 1e9;
    if (silent > offering_.watchdog_seconds) throw NoProgress(fmt::format("no request has ended for {:.1f} s", silent));
    for (const std::size_t slot : std::span(ended).first(count)) {
      free_.push_back(slot);
      ++ended_;
      if (open()) {
        record_open(requests_[slot], now);
      } else {
        record_closed(requests_[slot], now);
      }
    }
    return count != 0;
  }
  void record_closed(const Request& request, std::uint64_t now) {
    if (over_) return;
    if (result_.ramped) {
      ++result_.received;
      return result_.latency.record(now - request.submitted_ns);
    }
    // The first window met an emptier endpoint than all later ones, so it does not count.
    if (ended_ < offering_.window) return;
    result_.ramped = true;
    result_.ramp_seconds = static_cast<double>(now - begin_) / 1e9;
    counted_from_ = now;
  }
  void record_open(const Request& request, std::uint64_t now) {
    if (now <= end_ns()) ++result_.received;
    const std::uint64_t response = now - request.due_ns;
    result_.latency.record(response);
    result_.without_own_lag.record(response - request.own_lag_ns);
    result_.service.record(now - request.submitted_ns);
    if (const auto& priorities = offering_.schedule->priorities; !priorities.empty()) {
      result_.by_priority[priorities[request.number]].record(response);
    }
  }
  void read_backlog(std::uint64_t now) {
    if (!open() || now >= end_ns()) return;
    while (now - begin_ >= (backlog_.size() + 1) * kMillisecond) {
      const std::uint64_t due = offering_.schedule->due_until(now - begin_);
      backlog_.push_back(static_cast<double>(due) - static_cast<double>(ended_));
    }
  }

  Endpoint& endpoint_;
  const Offering& offering_;
  std::vector<Request> requests_;  // indexed by slot
  std::vector<std::size_t> free_;  // slots
  std::uint64_t begin_ = 0, counted_from_ = 0, last_end_ = 0, submitted_ = 0, ended_ = 0;
  std::uint64_t blocked_since_ = 0, blocked_ns_ = 0;
  bool over_ = false;
  std::vector<double> backlog_;
  LoadResult result_;
};

}  // namespace

LoadResult offer(Endpoint& endpoint, const Offering& offering) { return Phase(endpoint, offering).run(); }

void merge(LoadResult& all, const LoadResult& more) {
  all.began_ns = std::min(all.began_ns, more.began_ns);
  all.ramp_seconds = std::max(all.ramp_seconds, more.ramp_seconds);
  all.ramped = all.ramped && more.ramped;
  const double rate = all.seconds == 0 ? 0 : static_cast<double>(all.received) / all.seconds;
  const double more_rate = more.seconds == 0 ? 0 : static_cast<double>(more.received) / more.seconds;
  all.received += more.received;
  all.seconds = rate + more_rate == 0 ? 0 : static_cast<double>(all.received) / (rate + more_rate);
  all.latency.merge(more.latency);
  all.service.merge(more.service);
  all.without_own_lag.merge(more.without_own_lag);
  all.send_lag.merge(more.send_lag);
  all.own_lag.merge(more.own_lag);
  all.due += more.due;
  all.unsent += more.unsent;
  all.blocked_share = std::max(all.blocked_share, more.blocked_share);
  all.granularity_ns = std::max(all.granularity_ns, more.granularity_ns);
  all.backlog.begin += more.backlog.begin;
  all.backlog.end += more.backlog.end;
  all.backlog.most += more.backlog.most;
  all.backlog.per_second += more.backlog.per_second;
}

Backlog backlog_of(std::span<const double> readings, double seconds) {
  Backlog backlog;
  if (readings.empty() || seconds <= 0) return backlog;
  const std::size_t tenth = std::max<std::size_t>(1, readings.size() / 10);
  backlog.begin = trend_of(readings.first(tenth)).mean;
  backlog.end = trend_of(readings.last(tenth)).mean;
  backlog.most = *std::max_element(readings.begin(), readings.end());
  backlog.per_second = trend_of(readings).slope * static_cast<double>(readings.size()) / seconds;
  return backlog;
}

}  // namespace feedrate
