#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "common/error.hpp"
#include "common/redis/script.hpp"
#include "common/redis/settings.hpp"
#include "variants/feeding/queues/redis/elements.hpp"

namespace feedrate::redis_queue {

/// A worker that was taken for dead (it said nothing for longer than its lease) and woke up: others serve what it held.
struct LeaseLost : redis::ServerFailure {
  using ServerFailure::ServerFailure;
};

/// What becomes of messages whose worker died or whose workload failed; one worker's end of it. The parts, each a key
/// of the queue:
///
/// - `leases` (sorted set): until when each worker is taken for alive, by the server's clock. Each worker renews
///   its own and looks for those that ran out. `graves`: dead workers, to be looked at once more a lease later, because
///   a command of theirs may still have been on its way.
/// - `suspects` (list): messages that a dead worker held. One of them may have killed it, so a worker serves a suspect
///   only when it serves nothing else. While it does, the suspect lies in `alone:<worker>`; if the worker dies then,
///   only this message is to blame.
/// - `delayed` (sorted set): messages to be tried again later, by the time when they are due.
/// - `history` (hash): what went wrong with a message so far, by its id.
/// - `dead` (stream): dead letters: the message, the last error, how often it was delivered, its history.
///
/// How often a message was delivered is noted in its header (TaskInfo). Everything that moves a message is one script.
/// The design follows Sidekiq's super-fetch and BullMQ's stalled jobs, except that suspects are served alone.
class Redelivery {
 public:
  /// `name` is the worker's in each of its lives: what an earlier one held is taken over at once. `incarnation` is one
  /// that no other life has. `resumed`: the earlier life only lost its connections, so no message is to blame.
  /// `keeps`: the server keeps what is being served, so there are leases. `kind`: how tasks lie on the server: "list",
  /// "stream" or "zset".
  Redelivery(const RedisSettings&, std::string name, std::string incarnation, bool keeps, std::string kind,
             bool resumed);
  /// Gives up the lease; others take over at once what is still held.
  ~Redelivery();
  Redelivery(const Redelivery&) = delete;
  Redelivery& operator=(const Redelivery&) = delete;

  /// Renews the lease and looks after the queue, when it is time. Never blocks. Throws LeaseLost.
  void progress();
  /// Whether the lease is surely ours: else nothing may be taken.
  bool alive() const;

  /// A suspect to be served alone, if there is one; asks for it at the first call. Never blocks.
  std::optional<std::string> take_suspect();
  /// Suspects wait, or one was asked for: nothing else may be taken meanwhile.
  bool has_suspects() const { return suspects_ != 0 || holds_suspect(); }
  /// One was asked for or has come, and must be served even if this worker is to end.
  bool holds_suspect() const { return asked_for_suspect_ || suspect_; }
  /// Adds to `sink`: the suspect has been answered. By LPOP: the next one may be there already.
  void release_suspect(redis::Connection& sink) const { sink.append({"LPOP", names_.alone(worker_)}); }

  /// Adds to `sink`: this task is to be tried again after a while. `attempts`: how often it was delivered by now.
  void retry(redis::Connection& sink, std::string_view task, unsigned attempts, std::string_view error) const;
  /// Adds to `sink`: this task is a dead letter. Its client gets no answer by this.
  void bury(redis::Connection& sink, std::string_view task, unsigned attempts, std::string_view error) const;
  /// Adds to `sink`: a task that had failed before has succeeded.
  void forget(redis::Connection& sink, std::uint64_t id) const;

  const std::string& worker() const { return worker_; }
  unsigned most_attempts() const { return settings_.attempts; }

 private:
  void beat();
  void take_reply(const redisReply&, bool of_suspect);

  KeyNames names_;
  DeliverySettings settings_;
  std::string name_, worker_, kind_, lease_ms_, lifetime_ms_, results_ms_;
  redis::Connection connection_;
  redis::Script beat_, take_, retry_, bury_;
  std::uint64_t beat_sent_ns_ = 0, confirmed_ns_ = 0;  // when the last answered beat was sent
  bool resumed_, first_ = true, beating_ = false, asked_for_suspect_ = false;
  bool more_ = false;  // there is more to take over than the last beat did
  std::size_t suspects_ = 0;
  std::optional<std::string> suspect_;
};

}  // namespace feedrate::redis_queue
