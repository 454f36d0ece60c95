#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "common/error.hpp"
#include "variants/storage/copies.hpp"
#include "variants/storage/files.hpp"
#include "variants/storage/slots.hpp"

namespace feedrate::storage {
namespace {

struct ThreadsOptions {
  unsigned readers = 8, reader_slots = 3, streams = 2;
};
const Axes<ThreadsOptions>& own_axes_of_threads() {
  static const auto kAxes = Axes<ThreadsOptions>()
                                .number("readers", &ThreadsOptions::readers, {1, 128}, "threads that read or write")
                                .number("reader-slots", &ThreadsOptions::reader_slots, {1, 16},
                                        "blocks of pinned memory per reader: some are read while others are copied")
                                .number("streams", &ThreadsOptions::streams, {1, 32}, kStreamsHelp);
  return kAxes;
}

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

/// Threads read blocks into slots of pinned memory, while the thread that uses the engine has earlier blocks copied.
class ReaderThreads final : public Engine {
 public:
  explicit ReaderThreads(const EngineConfig& config)
      : operation_(config.operation),
        options_(own_axes_of_threads().of(config.own)),
        files_(config),
        slots_(std::min(config.depth, std::size_t{options_.readers} * options_.reader_slots)),
        staging_(config.device, slots_.count(), config.block),
        copies_(config.device, options_.streams, direction_of(config.operation)) {
    const auto readers = std::min<std::size_t>(options_.readers, config.depth);
    try {
      for (std::size_t i = 0; i < readers; ++i) threads_.emplace_back([this] { serve(); });
    } catch (const std::system_error& failure) {
      board_.stop();
      throw Failure(fmt::format("cannot start reader {} of {}: {}", threads_.size() + 1, readers, failure.what()));
    }
  }
  ~ReaderThreads() override { board_.stop(); }
  ReaderThreads(const ReaderThreads&) = delete;
  ReaderThreads& operator=(const ReaderThreads&) = delete;

  bool submit(const Request& request) override {
    if (slots_.full()) return false;
    const std::size_t slot = slots_.take(request);
    if (operation_ == Operation::read) {
      board_.add({request, slot});
    } else {
      copies_.add(copy_of(operation_, request, staging_.slot(slot), request.bytes), slot);
    }
    return true;
  }
  std::size_t poll(std::span<Completion> ended) override {
    board_.collect(moved_);
    for (const Moved& moved : moved_) {
      slots_.bytes(moved.slot) = moved.bytes;
      if (operation_ == Operation::write || moved.error != 0 || moved.bytes == 0) {
        slots_.end(moved.slot, moved.error);
      } else {
        copies_.add(copy_of(operation_, slots_.at(moved.slot), staging_.slot(moved.slot), moved.bytes), moved.slot);
      }
    }
    moved_.clear();
    copies_.poll([&](std::size_t slot) {
      if (operation_ == Operation::read) {
        slots_.end(slot);
      } else {
        board_.add({slots_.at(slot), slot});
      }
    });
    return slots_.poll(ended);
  }
  bool reopen() override {
    files_.reopen();  // the readers use them only for tasks that they take from the board
    return true;
  }
  std::map<std::string, std::string> path() const override {
    return {{"mode", "pinned memory"}, {"readers", std::to_string(threads_.size())}};
  }

 private:
  void serve() {
    for (Task task; board_.take(task);) {
      const Request& request = task.request;
      const int descriptor = files_.descriptor(request.file, request.offset, request.bytes);
      const Completion moved = move_block(operation_, descriptor, staging_.slot(task.slot), request);
      board_.end({task.slot, moved.error, moved.bytes});
    }
  }

  Operation operation_;
  ThreadsOptions options_;
  OpenFiles files_;
  Slots slots_;
  Staging staging_;
  Copies copies_;
  Board board_;
  std::vector<Moved> moved_;
  std::vector<std::jthread> threads_;  // destroyed first: they use all of the above
};

const EngineRegistration registered(
    "threads", {.description = "threads that read into slots of pinned memory, from which blocks are copied in groups",
                .axes = own_axes_of_threads().list(),
                .threads =
                    [](const EnginePoint& point) {
                      const unsigned readers = own_axes_of_threads().of(point.own).readers;
                      return static_cast<unsigned>(std::min<std::size_t>(readers, point.depth));
                    },
                .make = make_engine<ReaderThreads>});

}  // namespace
}  // namespace feedrate::storage
