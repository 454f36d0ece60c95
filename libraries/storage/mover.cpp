#include "libraries/storage/mover.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <system_error>
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
  std::deque<std::shared_ptr<Job>> gated = {};  // behind gates that were not reached when last asked
  std::vector<Flight> flights = {};             // by request id
  std::vector<std::size_t> free = {};

  bool active() const { return !waiting.empty() || !gated.empty() || free.size() != flights.size(); }
};

Mover::Mover(Device& device, MakeEngine make, Describe describe)
    : device_(device), make_(std::move(make)), describe_(std::move(describe)) {
  try {
    thread_ = std::jthread([this] { serve(); });
  } catch (const std::system_error& failure) {
    throw Failure(std::string("cannot start the thread of the source: ") + failure.what());
  }
}

Mover::~Mover() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  given_.notify_one();
}

void Mover::start(std::shared_ptr<Job> job) {
  if (job->nothing_left()) return finish(*job);
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
      for (std::shared_ptr<Job>& job : queue_) {
        Side& side = sides.at(static_cast<std::size_t>(job->operation()));
        (job->gated() ? side.gated : side.waiting).push_back(std::move(job));
      }
      queue_.clear();
      stopped = stopped_;
    }
    if (stopped) {
      for (Side& side : sides) abandon(side, {"the source was closed"}, false);
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
    bool progress = pass_gates(side);
    progress = submit(side) || progress;
    side.engine->flush();
    std::array<Completion, 64> ended;
    while (const std::size_t count = side.engine->poll(ended)) {
      for (const Completion& one : std::span(ended).first(count)) end(side, one);
      progress = true;
    }
    return progress;
  } catch (const std::exception& error) {  // the device or the engine failed: the next job gets a new engine
    const JobFailure failure{error.what()};
    // Freeing pinned memory waits for the entire device, so also for streams that wait for their gates.
    for (const auto& flight : side.flights) {
      if (flight.job) flight.job->open_gate();
    }
    for (const auto* jobs : {&side.waiting, &side.gated}) {
      for (const std::shared_ptr<Job>& job : *jobs) job->open_gate();
    }
    side.engine.reset();  // waits for what is in flight
    for (std::size_t id = 0; id < side.flights.size(); ++id) {
      if (side.flights[id].job) lose(side, id, failure);
    }
    abandon(side, failure, true);
    return true;
  }
}

/// Lets jobs begin whose gates were reached. Returns whether there were any.
bool Mover::pass_gates(Side& side) {
  constexpr std::size_t kAsked = 32;  // per poll, in turn
  bool passed = false;
  for (std::size_t i = std::min(kAsked, side.gated.size()); i-- > 0;) {
    std::shared_ptr<Job> job = std::move(side.gated.front());
    side.gated.pop_front();
    try {
      const bool begins = job->may_begin();
      passed = passed || begins;
      (begins ? side.waiting : side.gated).push_back(std::move(job));
    } catch (const std::exception& error) {  // its stream failed
      job->fail({error.what()}, 0);
      finish(*job);
    }
  }
  return passed;
}

bool Mover::submit(Side& side) {
  bool progress = false;
  while (!side.waiting.empty()) {
    const std::shared_ptr<Job> job = side.waiting.front();
    if (job->all_submitted()) {
      side.waiting.pop_front();
      continue;
    }
    if (side.free.empty()) {
      side.free.push_back(side.flights.size());
      side.flights.emplace_back();
    }
    const std::size_t id = side.free.back();
    const Run& run = job->plan().runs[job->next()];
    if (!side.engine->submit({id, run.file, run.offset, run.bytes, nullptr, job->pieces(run)})) break;
    side.free.pop_back();
    side.flights[id] = {job, &run};
    job->submitted();
    progress = true;
  }
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
  if (job->ended_one()) finish(*job);
}

/// Fails each job with runs that were not submitted. A job of which some runs were submitted fails only with `begun`.
void Mover::abandon(Side& side, const JobFailure& failure, bool begun) {
  for (auto* jobs : {&side.waiting, &side.gated}) {
    std::erase_if(*jobs, [&](const std::shared_ptr<Job>& job) {
      if (job->all_submitted()) return true;
      if (job->next() != 0 && !begun) return false;
      job->fail(failure, job->next());
      if (job->nothing_left()) job->finish();
      return true;
    });
  }
}

/// Ends a job, and counts what it has moved.
void Mover::finish(Job& job) {
  if (!job.failed()) {
    const std::lock_guard lock(mutex_);
    counts_.records += job.records();
    for (const Extent& extent : job.plan().extents) counts_.record_bytes += extent.bytes;
  }
  job.finish();
}

}  // namespace feedrate::storage
