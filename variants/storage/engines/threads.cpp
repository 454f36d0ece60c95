#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "common/threads/threads.hpp"
#include "variants/storage/copies.hpp"
#include "variants/storage/files.hpp"
#include "variants/storage/slots.hpp"

namespace feedrate::storage {
namespace {

struct ThreadsOptions {
  unsigned readers = 8, reader_slots = 3;
};
const Axes<ThreadsOptions>& own_axes_of_threads() {
  static const auto kAxes = Axes<ThreadsOptions>()
                                .number("readers", &ThreadsOptions::readers, {1, 128}, "threads that read and copy")
                                .number("reader-slots", &ThreadsOptions::reader_slots, {1, 16},
                                        "blocks of pinned memory per reader: one is read while others are copied");
  return kAxes;
}

/// Requests that readers take, and completions that they report.
class Board {
 public:
  void add(const Request& request) {
    {
      const std::lock_guard lock(mutex_);
      requests_.push_back(request);
    }
    added_.notify_one();
  }
  /// Takes a request. Waits for one if `wait` is set; returns false if there is none, or after stop().
  bool take(Request& request, bool wait) {
    std::unique_lock lock(mutex_);
    if (wait) added_.wait(lock, [this] { return stopped_ || !requests_.empty(); });
    if (stopped_ || requests_.empty()) return false;
    request = requests_.front();
    requests_.pop_front();
    return true;
  }
  void end(const Completion& completion) {
    const std::lock_guard lock(mutex_);
    ended_.push_back(completion);
  }
  void fail(std::exception_ptr failure) {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::move(failure);
  }
  /// Rethrows a reader's exception.
  std::size_t poll(std::span<Completion> ended) {
    const std::lock_guard lock(mutex_);
    if (failure_) std::rethrow_exception(failure_);
    const std::size_t count = std::min(ended.size(), ended_.size());
    std::copy_n(ended_.begin(), count, ended.begin());
    ended_.erase(ended_.begin(), ended_.begin() + static_cast<std::ptrdiff_t>(count));
    return count;
  }
  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    added_.notify_all();
  }
  bool stopped() {
    const std::lock_guard lock(mutex_);
    return stopped_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable added_;
  std::deque<Request> requests_;
  std::deque<Completion> ended_;
  std::exception_ptr failure_;
  bool stopped_ = false;
};

/// Readers with a few slots and a stream each. A reader reads the next block while its copies run.
class ReaderThreads final : public Engine {
 public:
  explicit ReaderThreads(const EngineConfig& config)
      : operation_(config.operation), device_(config.device), depth_(config.depth), files_(config) {
    const ThreadsOptions own = own_axes_of_threads().of(config.own);
    const auto readers = std::min<std::size_t>(own.readers, config.depth);
    for (std::size_t i = 0; i < readers; ++i) {
      staging_.push_back(std::make_unique<Staging>(device_, own.reader_slots, config.block));
    }
    for (std::size_t i = 0; i < readers; ++i) {
      threads_.emplace_back([this, i, slots = own.reader_slots] {
        try {
          device_.use_in_this_thread();
          serve(*staging_[i], slots);
        } catch (...) {
          board_.fail(std::current_exception());
        }
      });
    }
  }
  ~ReaderThreads() override { board_.stop(); }
  ReaderThreads(const ReaderThreads&) = delete;
  ReaderThreads& operator=(const ReaderThreads&) = delete;

  bool submit(const Request& request) override {
    if (in_flight_ == depth_) return false;
    ++in_flight_;
    board_.add(request);
    return true;
  }
  std::size_t poll(std::span<Completion> ended) override {
    const std::size_t count = board_.poll(ended);
    in_flight_ -= count;
    return count;
  }
  bool reopen() override {
    files_.reopen();  // the readers use them only for requests that they take from the board
    return true;
  }
  std::map<std::string, std::string> path() const override {
    return {{"mode", "pinned memory"}, {"readers", std::to_string(threads_.size())}};
  }

 private:
  void serve(Staging& staging, std::size_t count) {
    Slots slots(count);
    Copies copies(device_, 1, direction_of(operation_));
    Backoff backoff;
    const auto move = [&](std::size_t slot) {
      const Request& request = slots.at(slot);
      const int descriptor = files_.descriptor(request.file, request.offset, request.bytes);
      const Completion moved = move_block(operation_, descriptor, staging.slot(slot), request);
      slots.bytes(slot) = moved.bytes;
      return moved.error;
    };
    while (true) {
      copies.poll([&](std::size_t slot) {
        slots.end(slot, operation_ == Operation::write ? move(slot) : 0);
        backoff.reset();
      });
      Completion ended;
      while (slots.poll({&ended, 1}) != 0) board_.end(ended);
      Request request;
      if (slots.full() || !board_.take(request, copies.running() == 0)) {
        if (board_.stopped()) return;
        backoff.wait();
        continue;
      }
      backoff.reset();
      const std::size_t slot = slots.take(request);
      const int error = operation_ == Operation::read ? move(slot) : 0;
      const std::size_t bytes = operation_ == Operation::read ? slots.bytes(slot) : request.bytes;
      if (error != 0 || bytes == 0) {
        slots.end(slot, error);
      } else {
        copies.start(copy_of(operation_, request, staging.slot(slot), bytes), slot);
      }
    }
  }

  Operation operation_;
  Device& device_;
  std::size_t depth_, in_flight_ = 0;
  OpenFiles files_;
  Board board_;
  std::vector<std::unique_ptr<Staging>> staging_;
  std::vector<std::jthread> threads_;  // destroyed first: they use all of the above
};

const EngineRegistration registered(
    "threads", {.description = "threads with a few slots of pinned memory each, which read and copy",
                .axes = own_axes_of_threads().list(),
                .threads =
                    [](const EnginePoint& point) {
                      const unsigned readers = own_axes_of_threads().of(point.own).readers;
                      return static_cast<unsigned>(std::min<std::size_t>(readers, point.depth));
                    },
                .make = make_engine<ReaderThreads>});

}  // namespace
}  // namespace feedrate::storage
