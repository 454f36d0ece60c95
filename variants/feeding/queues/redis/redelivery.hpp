#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "common/error.hpp"
#include "common/redis/script.hpp"
#include "common/redis/settings.hpp"
#include "variants/feeding/queues/redis/elements.hpp"

namespace feedrate::redis_queue {

/// A worker woke up after its lease had expired: it was presumed dead, and other workers now serve what it held.
struct LeaseLost : redis::ServerFailure {
  using ServerFailure::ServerFailure;
};

/// Redelivery of messages whose worker died or whose workload failed: the part that each worker performs. It uses these
/// keys of the queue:
///
/// - `leases` (sorted set): the time until which each worker is presumed alive, by the server's clock. Each worker
///   renews its own lease and checks for expired ones. `dead_workers` has dead workers, which are checked again one
///   lease later, because one of their commands may still have been in flight.
/// - `suspects` (list): messages that a dead worker held. One of them may have killed it, so a worker serves a suspect
///   only when it serves nothing else. During that time the suspect is in `alone:<worker>`; if the worker dies, only
///   this message is to blame.
/// - `delayed` (sorted set): messages to be retried later, by due time.
/// - `history` (hash): the errors of each message so far, by its id.
/// - `dead` (stream): dead letters, each with the message, the last error, the number of deliveries and the history.
///
/// A message's header (TaskInfo) counts its deliveries. Each move of a message is one script. The design follows
/// Sidekiq's super-fetch and BullMQ's stalled jobs, except that suspects are served alone.
class Redelivery {
 public:
  /// `name` is the worker's name, the same in each incarnation: tasks that an earlier incarnation held are taken over
  /// at once. `incarnation` is unique to this one. `resumed`: the earlier incarnation only lost its connections, so no
  /// message is to blame. `keeps`: the server keeps tasks that are being served, so workers have leases. `kind`: the
  /// type of the tasks' key on the server, "list", "stream" or "zset".
  Redelivery(const RedisSettings&, std::string name, std::string incarnation, bool keeps, std::string kind,
             bool resumed);
  /// Gives up the lease, so that other workers take over the remaining tasks at once.
  ~Redelivery();
  Redelivery(const Redelivery&) = delete;
  Redelivery& operator=(const Redelivery&) = delete;

  /// Renews the lease and takes over tasks of dead workers, when due. Never blocks. Throws LeaseLost.
  void progress();
  /// Whether this worker is certain to hold its lease; if not, it must take nothing.
  bool alive() const;

  /// Returns a suspect to be served alone, if one has arrived; the first call requests it. Never blocks.
  std::optional<std::string> take_suspect();
  /// Whether suspects are waiting or one has been requested; while this is true, no other task may be taken.
  bool has_suspects() const { return suspects_ != 0 || holds_suspect(); }
  /// Whether a suspect was requested or has arrived; it must be served even if this worker is stopping.
  bool holds_suspect() const { return asked_for_suspect_ || suspect_; }
  /// Adds the removal of an answered suspect to `sink`. LPOP removes only this one: the next may already be in the
  /// list.
  void release_suspect(redis::Connection& sink) const { sink.append({"LPOP", names_.alone(worker_)}); }

  /// Adds a delayed retry of this task to `sink`. `attempts`: number of deliveries so far.
  void retry(redis::Connection& sink, std::string_view task, unsigned attempts, std::string_view error) const;
  /// Adds this task to `sink` as a dead letter. This does not answer the client.
  void bury(redis::Connection& sink, std::string_view task, unsigned attempts, std::string_view error) const;
  /// Adds the removal of a task's history to `sink`, after the task has succeeded on a later attempt.
  void forget(redis::Connection& sink, std::uint64_t id) const;

  const std::string& worker() const { return worker_; }
  unsigned max_attempts() const { return settings_.attempts; }

 private:
  /// The arguments of every script (kShared), followed by one script's own arguments, `own`. The caller keeps `own`
  /// alive.
  std::vector<std::string_view> arguments(std::initializer_list<std::string_view> own) const;
  void beat();
  void take_reply(const redisReply&, bool of_suspect);

  KeyNames names_;
  DeliverySettings settings_;
  std::string name_, worker_, kind_, lease_ms_, lifetime_ms_, results_ms_, dead_letters_;
  redis::Connection connection_;
  redis::Script beat_, take_, retry_, bury_;
  std::uint64_t beat_sent_ns_ = 0;  // when the last heartbeat was sent
  std::uint64_t confirmed_ns_ = 0;  // when the last acknowledged heartbeat was sent
  bool resumed_, first_ = true, beating_ = false, asked_for_suspect_ = false;
  bool more_ = false;  // the last heartbeat left more tasks to take over
  std::size_t suspects_ = 0;
  std::optional<std::string> suspect_;
};

}  // namespace feedrate::redis_queue
