#include "libraries/storage/mover.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "common/threads/threads.hpp"

namespace feedrate::storage {
namespace {

/// Bytes of a run that its pieces need.
std::size_t needed(const Job& job, const Run& run) {
  std::size_t end = 0;
  for (const Piece& piece : job.pieces(run)) end = std::max(end, piece.at + piece.bytes);
  return end;
}

/// Waits between polls: awake while an early end is likely, then with the core left to others. Requests that are in
/// flight keep the drive and the copy engines busy in the meantime.
class Pause {
 public:
  void wait() {
    constexpr unsigned kAwake = 2000;
    constexpr std::chrono::microseconds kAsleep(20);
    if (polls_++ < kAwake) {
      backoff_.wait();
    } else {
      std::this_thread::sleep_for(kAsleep);
    }
  }
  void reset() {
    polls_ = 0;
    backoff_.reset();
  }

 private:
  Backoff backoff_;
  unsigned polls_ = 0;
};

}  // namespace

/// One direction: its engine, the jobs with runs to submit, and the runs in flight.
struct Mover::Side {
  struct Flight {
    std::shared_ptr<Job> job;
    const Run* run = nullptr;
  };
  Operation operation;
  std::unique_ptr<Engine> engine = {};
  std::deque<std::shared_ptr<Job>> waiting = {};
  std::vector<Flight> flights = {};  // by request id
  std::vector<std::size_t> free = {};

  bool active() const { return !waiting.empty() || free.size() != flights.size(); }
};

Mover::Mover(Device& device, MakeEngine make, Describe describe)
    : device_(device), make_(std::move(make)), describe_(std::move(describe)), thread_([this] { serve(); }) {}

Mover::~Mover() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  given_.notify_one();
}

void Mover::start(std::shared_ptr<Job> job) {
  if (job->nothing_left()) return job->finish();
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(job));
  }
  given_.notify_one();
}

MoverCounts Mover::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

void Mover::serve() {
  device_.use_in_this_thread();
  std::array<Side, 2> sides{Side{Operation::read}, Side{Operation::write}};
  Pause pause;
  for (bool stopped = false;;) {
    const bool idle = std::ranges::none_of(sides, &Side::active);
    {
      std::unique_lock lock(mutex_);
      if (idle) given_.wait(lock, [this] { return stopped_ || !queue_.empty(); });
      for (std::shared_ptr<Job>& job : queue_)
        sides.at(static_cast<std::size_t>(job->operation())).waiting.push_back(std::move(job));
      queue_.clear();
      stopped = stopped_;
    }
    if (stopped) {
      for (Side& side : sides) abandon(side, {"the source was closed"});
    }
    if (std::ranges::none_of(sides, &Side::active)) {
      if (stopped) return;
      continue;
    }
    bool progress = false;
    for (Side& side : sides) progress = (side.active() && step(side)) || progress;
    if (progress) {
      pause.reset();
    } else {
      pause.wait();
    }
  }
}

/// Submits and collects. Returns false if nothing has changed.
bool Mover::step(Side& side) {
  try {
    if (!side.engine) side.engine = make_(side.operation);
    bool progress = submit(side);
    side.engine->flush();
    std::array<Completion, 64> ended;
    while (const std::size_t count = side.engine->poll(ended)) {
      for (const Completion& one : std::span(ended).first(count)) end(side, one);
      progress = true;
    }
    return progress;
  } catch (const std::exception& error) {  // the device or the engine failed: the next job gets a new engine
    const JobFailure failure{error.what()};
    side.engine.reset();  // waits for what is in flight
    for (std::size_t id = 0; id < side.flights.size(); ++id) {
      if (side.flights[id].job) lose(side, id, failure);
    }
    abandon(side, failure);
    return true;
  }
}

bool Mover::submit(Side& side) {
  bool progress = false, full = false;
  for (const std::shared_ptr<Job>& job : side.waiting) {
    while (!full && !job->all_submitted() && job->may_begin()) {
      if (side.free.empty()) {
        side.free.push_back(side.flights.size());
        side.flights.emplace_back();
      }
      const std::size_t id = side.free.back();
      const Run& run = job->plan().runs[job->next()];
      full = !side.engine->submit({id, run.file, run.offset, run.bytes, nullptr, job->pieces(run)});
      if (full) break;
      side.free.pop_back();
      side.flights[id] = {job, &run};
      job->submitted();
      progress = true;
    }
    if (full) break;
  }
  std::erase_if(side.waiting, [](const std::shared_ptr<Job>& job) { return job->all_submitted(); });
  return progress;
}

void Mover::end(Side& side, const Completion& completion) {
  const auto& [job, run] = side.flights[completion.id];
  const bool failed = completion.error != 0 || completion.bytes < needed(*job, *run);
  {
    const std::lock_guard lock(mutex_);
    ++counts_.requests;
    counts_.request_bytes += completion.bytes;
    counts_.errors += failed ? 1 : 0;
  }
  lose(side, completion.id, failed ? std::optional(describe_(*job, *run, completion)) : std::nullopt);
}

/// Ends a run in flight, with or without a failure.
void Mover::lose(Side& side, std::size_t id, const std::optional<JobFailure>& failure) {
  const auto [job, run] = std::exchange(side.flights[id], {});
  side.free.push_back(id);
  if (failure) job->fail(*failure, static_cast<std::size_t>(run - job->plan().runs.data()));
  if (job->ended_one()) job->finish();
}

/// Fails all jobs of which runs are yet to be submitted.
void Mover::abandon(Side& side, const JobFailure& failure) {
  for (const std::shared_ptr<Job>& job : side.waiting) {
    if (job->all_submitted()) continue;
    job->fail(failure, job->next());
    if (job->nothing_left()) job->finish();
  }
  side.waiting.clear();
}

}  // namespace feedrate::storage
