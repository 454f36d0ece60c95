#pragma once
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "libraries/storage/copies.hpp"
#include "libraries/storage/files.hpp"
#include "libraries/storage/slots.hpp"

namespace feedrate::storage {

struct ReaderThreadsOptions {
  unsigned readers = 8;  ///< threads that read or write
  unsigned slots = 3;    ///< blocks of pinned memory per reader: some are read while others are copied
  unsigned streams = 2;  ///< groups of copies that run at once
};

/// Threads read blocks into slots of pinned memory, while the thread that uses the engine has earlier blocks copied.
class ReaderThreads final : public Engine {
 public:
  ReaderThreads(const EngineConfig&, const ReaderThreadsOptions&);
  ~ReaderThreads() override { board_.stop(); }
  ReaderThreads(const ReaderThreads&) = delete;
  ReaderThreads& operator=(const ReaderThreads&) = delete;

  bool submit(const Request&) override;
  std::size_t poll(std::span<Completion> ended) override;
  bool reopen() override;
  std::map<std::string, std::string> path() const override;

 private:
  /// A block to move between a file and a slot.
  struct Task {
    Request request;
    std::size_t slot = 0;
  };
  struct Moved {
    std::size_t slot = 0;
    int error = 0;
    std::size_t bytes = 0;
  };

  /// Tasks for the readers, and their results.
  class Board {
   public:
    void add(const Task& task) {
      {
        const std::lock_guard lock(mutex_);
        tasks_.push_back(task);
      }
      added_.notify_one();
    }
    /// Waits for a task. Returns false after stop().
    bool take(Task& task) {
      std::unique_lock lock(mutex_);
      added_.wait(lock, [this] { return stopped_ || !tasks_.empty(); });
      if (stopped_) return false;
      task = tasks_.front();
      tasks_.pop_front();
      return true;
    }
    void end(const Moved& moved) {
      const std::lock_guard lock(mutex_);
      moved_.push_back(moved);
    }
    /// Exchanges the results for an empty list.
    void collect(std::vector<Moved>& moved) {
      const std::lock_guard lock(mutex_);
      moved_.swap(moved);
    }
    void stop() {
      {
        const std::lock_guard lock(mutex_);
        stopped_ = true;
      }
      added_.notify_all();
    }

   private:
    std::mutex mutex_;
    std::condition_variable added_;
    std::deque<Task> tasks_;
    std::vector<Moved> moved_;
    bool stopped_ = false;
  };

  void serve();

  Operation operation_;
  OpenFiles files_;
  Slots slots_;
  Staging staging_;
  Copies copies_;
  Board board_;
  std::vector<Moved> moved_;
  std::vector<std::jthread> threads_;  // destroyed first: they use all of the above
};

}  // namespace feedrate::storage
