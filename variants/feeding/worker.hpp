#pragma once
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "variants/feeding/queue.hpp"
#include "variants/feeding/transfer.hpp"

namespace feedrate {

/// A broker queue's serving end: where workers get batches and bring results. Used by one thread.
class Broker {
 public:
  virtual ~Broker() = default;
  /// Messages to work on, if any wait; never blocks. At most as many are out at once as the transfer takes.
  virtual std::optional<Batch> fetch() = 0;
  /// The results of a fetched batch are in its `out`. Batches come back in the order they were fetched, or, where the
  /// broker takes them so, as they finish.
  virtual void complete(const Batch&) = 0;
  virtual bool takes_any_order() const { return false; }
  /// Sends on what could not be sent at once. Never blocks.
  virtual void progress() {}
  /// No more new work: fetch returns only what the broker already holds. False until nothing is left.
  virtual bool finish() { return true; }
};

/// Feeds a transfer from a broker until told to stop.
class Worker {
 public:
  Worker(Broker& broker, Transfer& transfer, StageClock* stages = nullptr)
      : broker_(broker), transfer_(transfer), stages_(stages) {}
  /// Returns when `stop` was requested and everything fetched is completed; on `abandon`, at once.
  void run(const std::stop_token& stop, const std::stop_token& abandon);
  std::uint64_t served() const { return served_; }

 private:
  void note_fetched(Batch&);
  void note_finished(const Batch&);
  /// Gives finished batches back: at once, or those whose turn it is.
  void hand_back(const Batch&);
  void complete(const Batch&);

  Broker& broker_;
  Transfer& transfer_;
  StageClock* stages_;
  std::uint64_t served_ = 0, fetched_ = 0, completed_ = 0;  // messages, batches, batches
  std::map<std::uint64_t, Batch> early_;                    // finished ahead of their turn, by order
};

/// Worker threads, each with its own broker end and transfer, made by `make` in the thread's own index order.
class WorkerPool {
 public:
  using MakeBroker = std::function<std::unique_ptr<Broker>(unsigned index)>;
  WorkerPool(const QueueConfig&, unsigned workers, const MakeBroker& make);
  ~WorkerPool() { stop(false); }
  void start();
  void stop(bool drain);
  /// Throws what ended a worker.
  void check();
  unsigned size() const { return static_cast<unsigned>(members_.size()); }
  /// What its transfers chose.
  Choices choices() const;

 private:
  struct Member {
    std::unique_ptr<Broker> broker;
    std::unique_ptr<Transfer> transfer;  // after the broker: its work uses the broker's memory, so it goes first
  };
  Device& device_;
  StageClock* stages_;
  std::vector<Member> members_;
  std::stop_source stop_, abandon_;
  std::mutex mutex_;
  std::exception_ptr failure_;
  std::vector<std::jthread> threads_;
};

TransferConfig transfer_config(const QueueConfig&);

}  // namespace feedrate
