#pragma once
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "feedrate/storage.hpp"
#include "libraries/storage/engine.hpp"
#include "libraries/storage/gate.hpp"
#include "libraries/storage/plan.hpp"

namespace feedrate::storage {

/// Why a job failed. A value, because each thread that waits throws an exception of its own.
struct JobFailure {
  std::string text;
  std::optional<int> error = {};  ///< the errno value, or 0, if a file or a drive failed; none: something else

  [[noreturn]] void raise() const {
    if (error) throw StorageError(text, *error);
    throw Failure(text);
  }
};

/// A read or write: its plan, and its end, for which other threads can wait.
class Job {
 public:
  /// `gate`: the job begins once it is reached, and its end opens it; null: the job begins at once.
  Job(Operation operation, Plan plan, std::unique_ptr<Gate> gate, std::uint64_t records = 0)
      : operation_(operation),
        plan_(std::move(plan)),
        gate_(std::move(gate)),
        records_(records),
        left_(plan_.runs.size()) {}

  Operation operation() const { return operation_; }
  const Plan& plan() const { return plan_; }
  std::uint64_t records() const { return records_; }
  /// The pieces of a run.
  std::span<const Piece> pieces(const Run& run) const { return std::span(plan_.pieces).subspan(run.first, run.pieces); }

  // Used only by the thread that moves the data.
  bool gated() const { return gate_ != nullptr; }
  bool may_begin() { return !gate_ || gate_->reached(); }
  /// Lets the stream go on, although the job has not ended.
  void open_gate() {
    if (gate_) gate_->open();
  }
  bool failed() const { return failure_.has_value(); }
  std::size_t next() const { return next_; }  ///< number of runs that were submitted
  void submitted() { ++next_; }
  bool all_submitted() const { return next_ == plan_.runs.size() || failure_; }
  /// Keeps the failure of the earliest run; runs that were not submitted never are.
  void fail(JobFailure failure, std::size_t run) {
    if (!failure_) left_ -= plan_.runs.size() - next_;
    if (failure_ && run >= failed_run_) return;
    failure_ = std::move(failure);
    failed_run_ = run;
  }
  /// Ends one submitted run. Returns true if the job has ended.
  bool ended_one() { return --left_ == 0; }
  bool nothing_left() const { return left_ == 0; }

  /// Opens the gate, and wakes the threads that wait.
  void finish() {
    gate_.reset();
    {
      const std::lock_guard lock(mutex_);
      done_ = true;
    }
    changed_.notify_all();
  }
  bool done() const {
    const std::lock_guard lock(mutex_);
    return done_;
  }
  /// Waits until finish(), with `wait(condition, lock, done)`; returns whether it is done. Throws the job's failure.
  template <class Wait>
  bool wait(Wait&& wait_on) const {
    std::unique_lock lock(mutex_);
    wait_on(changed_, lock, [this] { return done_; });
    if (done_ && failure_) failure_->raise();
    return done_;
  }

 private:
  Operation operation_;
  Plan plan_;
  std::unique_ptr<Gate> gate_;
  std::uint64_t records_;
  std::size_t next_ = 0, left_, failed_run_ = 0;
  std::optional<JobFailure> failure_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  bool done_ = false;
};

}  // namespace feedrate::storage
