#pragma once
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "libraries/storage/engine.hpp"
#include "libraries/storage/job.hpp"

namespace feedrate::storage {

/// Counts of what has been moved; see Statistics.
struct MoverCounts {
  std::uint64_t records = 0, record_bytes = 0, requests = 0, request_bytes = 0, errors = 0;
};

/// A thread that moves the data of jobs with one engine for each direction. Jobs begin in the order in which they were
/// given.
class Mover {
 public:
  using MakeEngine = std::function<std::unique_ptr<Engine>(Operation)>;
  /// Describes a run that failed: its first bytes that are missing, and the cause.
  using Describe = std::function<JobFailure(const Job&, const Run&, const Completion&)>;

  /// The thread makes an engine when a job first needs it; a failure of that fails the job.
  Mover(Device& device, MakeEngine make, Describe describe);
  /// Waits for jobs that have begun; all others fail.
  ~Mover();
  Mover(const Mover&) = delete;
  Mover& operator=(const Mover&) = delete;

  void start(std::shared_ptr<Job>);
  MoverCounts counts() const;

 private:
  struct Side;
  void serve();
  bool step(Side&);
  bool pass_gates(Side&);
  static bool submit(Side&);
  void end(Side&, const Completion&);
  void lose(Side&, std::size_t id, const std::optional<JobFailure>&);
  static void abandon(Side&, const JobFailure&, bool begun);
  void finish(Job&);

  Device& device_;
  MakeEngine make_;
  Describe describe_;
  mutable std::mutex mutex_;
  std::condition_variable given_;
  std::deque<std::shared_ptr<Job>> queue_;
  MoverCounts counts_;
  bool stopped_ = false;
  std::jthread thread_;  // destroyed first
};

}  // namespace feedrate::storage
