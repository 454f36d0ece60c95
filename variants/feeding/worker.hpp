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

/// The serving end of a broker queue: workers fetch batches from it and return results to it. Used by one thread.
class Broker {
 public:
  virtual ~Broker() = default;
  /// Returns a batch to work on, if messages are waiting. Never blocks. The transfer's depth limits the batches in
  /// flight.
  virtual std::optional<Batch> fetch() = 0;
  /// Takes a fetched batch, with its results in `out`. Batches are completed in the order of fetching, or as they
  /// finish if the broker accepts any order.
  virtual void complete(const Batch&) = 0;
  virtual bool takes_any_order() const { return false; }
  /// Sends data that could not be sent at once. Never blocks.
  virtual void progress() {}
  /// Accepts no new work: fetch returns only messages that the broker already holds. Returns false until nothing is
  /// left.
  virtual bool finish() { return true; }
};

/// Feeds a transfer from a broker until a stop is requested.
class Worker {
 public:
  Worker(Broker& broker, Transfer& transfer, StageClock* stages = nullptr)
      : broker_(broker), transfer_(transfer), stages_(stages) {}
  /// Returns when `stop` has been requested and all fetched batches are completed, or at once on `abandon`.
  void run(const std::stop_token& stop, const std::stop_token& abandon);
  std::uint64_t served() const { return served_; }

 private:
  void note_fetched(Batch&);
  void note_finished(const Batch&);
  /// Returns a finished batch to the broker: at once, or in the order of fetching.
  void hand_back(const Batch&);
  void complete(const Batch&);

  Broker& broker_;
  Transfer& transfer_;
  StageClock* stages_;
  std::uint64_t served_ = 0, fetched_ = 0, completed_ = 0;  // messages, batches, batches
  std::map<std::uint64_t, Batch> early_;                    // finished before earlier batches, by order
};

/// Worker threads, each with its own transfer and its own broker, which `make` creates in index order.
class WorkerPool {
 public:
  using MakeBroker = std::function<std::unique_ptr<Broker>(unsigned index)>;
  WorkerPool(const QueueConfig&, unsigned workers, const MakeBroker& make);
  ~WorkerPool() { stop(false); }
  void start();
  void stop(bool drain);
  /// Rethrows the exception that ended a worker.
  void check();
  unsigned size() const { return static_cast<unsigned>(members_.size()); }
  /// The choices of its transfers.
  Choices choices() const;

 private:
  struct Member {
    std::unique_ptr<Broker> broker;
    std::unique_ptr<Transfer>
        transfer;  // declared after the broker, whose memory it uses, so that it is destroyed first
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
