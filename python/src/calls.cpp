#include "calls.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace feedrate::python {
namespace {

constexpr unsigned kPollsPerClockCheck = 256;

/// Spins for a number of polls, then yields the core in case the thread that serves the message needs it.
class Backoff {
 public:
  explicit Backoff(bool few_cores) : spins_(few_cores ? 0 : 2000) {}
  /// Returns whether it yielded the core. Other threads may then have used the core for milliseconds.
  bool wait() {
    if (idle_ < spins_) {
      ++idle_;
      return false;
    }
    std::this_thread::yield();
    return true;
  }
  void reset() { idle_ = 0; }

 private:
  unsigned spins_, idle_ = 0;
};

bool few_cores() { return std::thread::hardware_concurrency() <= 4; }

}  // namespace

Mailbox::Mailbox(bool quiet) : descriptor_(quiet ? -1 : eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  if (!quiet && descriptor_ < 0) throw Failure(std::string("eventfd: ") + std::strerror(errno));
}

Mailbox::~Mailbox() {
  if (!quiet()) close(descriptor_);
}

void Mailbox::put(Ticket* ticket) {
  const std::lock_guard lock(mutex_);
  arrived_.push_back(ticket);
  if (quiet() || arrived_.size() > 1) return;  // the reader was already notified
  const std::uint64_t one = 1;
  // The write can fail only if the counter is at its maximum; in that case, the reader was already notified.
  [[maybe_unused]] const auto written = write(descriptor_, &one, sizeof one);
}

std::vector<Ticket*> Mailbox::take() {
  const std::lock_guard lock(mutex_);
  if (!quiet()) {
    std::uint64_t count = 0;
    [[maybe_unused]] const auto got = read(descriptor_, &count, sizeof count);  // an empty counter is not an error
  }
  return std::exchange(arrived_, {});
}

void Mailbox::wait(std::chrono::milliseconds most) const {
  pollfd one{descriptor_, POLLIN, 0};
  poll(&one, 1, static_cast<int>(most.count()));
}

Calls::Calls(Device& device, const Kernel& work, const RingConfig& config)
    : config_(config), ring_(device, work, config), lanes_(config.lanes) {}

Calls::~Calls() { stop(RingStop::now, {}); }

Ticket* Calls::take_ticket(const std::shared_ptr<Mailbox>& mailbox, void* owner) {
  const std::lock_guard lock(pool_mutex_);
  if (free_.empty()) {
    pool_.emplace_back();
    pool_.back().id = static_cast<std::uint32_t>(pool_.size() - 1);
    free_.push_back(&pool_.back());
  }
  Ticket* const ticket = free_.back();
  free_.pop_back();
  ticket->arrived.store(false, std::memory_order_relaxed);
  ticket->state = Ticket::State::idle;
  ticket->mailbox = mailbox;
  ticket->owner = owner != nullptr ? owner : this;
  return ticket;
}

void Calls::give_back(Ticket* ticket) {
  const std::lock_guard lock(pool_mutex_);
  if (ticket->state == Ticket::State::waiting || ticket->state == Ticket::State::delivering) {
    ticket->owner = nullptr;  // deliver() returns the ticket to the pool; until then a slot of the ring refers to it
    return;
  }
  ticket->state = Ticket::State::idle;
  free_.push_back(ticket);
}

Ticket* Calls::try_submit(std::span<const std::byte> payload, const std::shared_ptr<Mailbox>& mailbox, void* owner) {
  const auto throw_if_stopped = [this] {
    if (stopped_.load()) throw Failure(broken_.empty() ? "the ring is closed" : broken_);
  };
  throw_if_stopped();
  if (!started_.load(std::memory_order_acquire)) {
    const std::lock_guard lock(start_mutex_);
    throw_if_stopped();
    if (!started_.load()) ring_.start();
    started_.store(true, std::memory_order_release);
  }
  Ticket* const ticket = take_ticket(mailbox, owner);
  const unsigned from = next_lane_.fetch_add(1, std::memory_order_relaxed);
  for (unsigned tried = 0; tried < config_.lanes; ++tried) {
    const unsigned index = (from + tried) % config_.lanes;
    const std::lock_guard lock(lanes_[index].in);
    if (paused_.load() != 0 || stopped_.load()) break;  // stop() takes this lock before it drains
    RingLane& lane = ring_.lane(index);
    const Messages room = lane.reserve(1);
    if (room.empty()) continue;
    ticket->lane = index;
    room.header(0) = {ticket->id, static_cast<std::uint32_t>(payload.size()), 0};
    std::copy(payload.begin(), payload.end(), room.payload(0));
    {
      const std::lock_guard pool(pool_mutex_);
      ticket->state = Ticket::State::waiting;
    }
    in_flight_.fetch_add(1, std::memory_order_relaxed);
    if (mailbox != nullptr && !mailbox->quiet() && expected_.fetch_add(1) == 0) {
      const std::lock_guard expecting(expected_mutex_);
      if (!collector_.joinable()) {
        collector_ = std::jthread([this](const std::stop_token& stop) { collect_for_mailboxes(stop); });
      }
      expects_.notify_one();
    }
    lane.publish(1);
    return ticket;
  }
  give_back(ticket);
  throw_if_stopped();
  collect();  // uncollected results of abandoned calls would keep the ring full
  return nullptr;
}

bool Calls::claim(Ticket& ticket) {
  const std::lock_guard lock(pool_mutex_);
  if (ticket.state != Ticket::State::waiting) return false;
  ticket.state = Ticket::State::delivering;
  return true;
}

/// Delivers a ticket that holds its result. Only the thread that claimed the ticket may call it.
void Calls::deliver(Ticket& ticket, Ending ending) {
  ticket.ending = ending;
  const std::shared_ptr<Mailbox> mailbox = std::move(ticket.mailbox);
  in_flight_.fetch_sub(1, std::memory_order_relaxed);
  if (mailbox != nullptr && !mailbox->quiet()) expected_.fetch_sub(1);
  {
    const std::lock_guard lock(pool_mutex_);
    if (ticket.owner == nullptr) {
      ticket.state = Ticket::State::idle;
      free_.push_back(&ticket);
      return;
    }
    ticket.state = Ticket::State::arrived;
    // After this store, the caller may give the ticket back.
    if (mailbox == nullptr) ticket.arrived.store(true, std::memory_order_release);
  }
  if (mailbox != nullptr) mailbox->put(&ticket);
}

std::size_t Calls::collect(unsigned index) {
  const std::unique_lock lock(lanes_[index].out, std::try_to_lock);
  return lock ? collect_held(index) : 0;  // otherwise another thread is collecting for all
}

std::size_t Calls::collect_held(unsigned index) {
  RingLane& lane = ring_.lane(index);
  ConstMessages results;
  try {
    results = lane.poll(config_.batch);
  } catch (const Failure& failure) {  // restarting a parked lane failed
    fail(failure.what());
    return 0;
  }
  for (std::size_t i = 0; i < results.count; ++i) {
    const Header& header = results.header(i);
    Ticket* ticket = nullptr;
    {
      const std::lock_guard pool(pool_mutex_);
      ticket = &pool_.at(header.id);
    }
    if (!claim(*ticket)) continue;  // the ring failed, and fail() has ended the ticket
    const bool failed = (header.length & kFailed) != 0;
    ticket->fault = failed ? static_cast<Fault>(header.length & ~kFailed) : Fault::none;
    ticket->payload.assign(results.payload(i), results.payload(i) + payload_bytes(header));
    deliver(*ticket, failed ? Ending::failed : Ending::ok);
  }
  lane.release(results.count);
  return results.count;
}

void Calls::check() {
  try {
    ring_.check();
  } catch (const Failure& failure) {
    fail(failure.what());
  }
}

void Calls::fail(const std::string& what) {
  {
    const std::lock_guard lock(start_mutex_);
    if (stopped_.load()) return;
    broken_ = what;
    stopped_.store(true);
  }
  end_all(Ending::broken);
}

bool Calls::wait(const Ticket& ticket, std::chrono::nanoseconds slice) {
  const auto until = std::chrono::steady_clock::now() + slice;
  static const bool few = few_cores();
  Backoff backoff(few);
  for (unsigned polls = 1; !ticket.arrived.load(std::memory_order_acquire); ++polls) {
    const bool found = !stopped_.load(std::memory_order_relaxed) && collect(ticket.lane) != 0;
    const bool yielded = !found && backoff.wait();
    if (!yielded && polls % kPollsPerClockCheck != 0) continue;
    if (std::chrono::steady_clock::now() >= until) {
      check();
      break;
    }
  }
  return ticket.arrived.load(std::memory_order_acquire);
}

void Calls::collect() {
  if (stopped_.load() || !started_.load()) return;
  for (unsigned lane = 0; lane < config_.lanes; ++lane) collect(lane);
}

void Calls::collect_for_mailboxes(const std::stop_token& stop) {
  Backoff backoff(few_cores());
  unsigned polls = 0;
  while (!stop.stop_requested()) {
    if (expected_.load() == 0) {
      std::unique_lock lock(expected_mutex_);
      expects_.wait(lock, stop, [this] { return expected_.load() != 0; });
      continue;
    }
    std::size_t found = 0;
    for (unsigned lane = 0; lane < config_.lanes; ++lane) found += collect(lane);
    if (found != 0) {
      backoff.reset();
      continue;
    }
    if (++polls % (64 * kPollsPerClockCheck) == 0) check();
    backoff.wait();
  }
}

void Calls::end_all(Ending ending) {
  std::vector<Ticket*> every;
  {
    const std::lock_guard lock(pool_mutex_);
    for (Ticket& ticket : pool_) every.push_back(&ticket);
  }
  for (Ticket* const ticket : every) {
    if (claim(*ticket)) deliver(*ticket, ending);
  }
}

void Calls::stop(RingStop how, std::chrono::nanoseconds patience) {
  {
    const std::lock_guard lock(start_mutex_);
    if (shut_) return;
    shut_ = true;
    stopped_.store(true);
  }
  for (Lane& lane : lanes_) const std::lock_guard last(lane.in);  // waits for threads that are publishing
  try {
    if (started_.load()) ring_.stop(how, patience);
  } catch (const Failure&) {  // the device failed, so no more results arrive
  }
  collector_.request_stop();
  if (collector_.joinable()) collector_.join();
  for (unsigned lane = 0; started_.load() && lane < config_.lanes; ++lane) {
    const std::lock_guard lock(lanes_[lane].out);
    while (collect_held(lane) != 0) {
    }
  }
  end_all(Ending::stopped);
}

void Calls::pause(bool on) {
  paused_.fetch_add(on ? 1 : -1);
  for (Lane& lane : lanes_) const std::lock_guard last(lane.in);
}

bool Calls::parked() {
  collect();  // results of abandoned calls
  return !started_.load() || stopped_.load() || (in_flight() == 0 && ring_.stats().parked_lanes == config_.lanes);
}

bool Calls::resting() const {
  return !started_.load() || stopped_.load() || ring_.stats().parked_lanes == config_.lanes;
}

}  // namespace feedrate::python
