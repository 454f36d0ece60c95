#pragma once
#include "variants/queues/redis/list.hpp"

/// What queues share whose workers hold what they serve in a processing list of their own.
namespace feedrate::redis_queue {

inline std::vector<Axis> processing_axes() {
  std::vector<Axis> axes = own_axes().list();
  for (const Axis& axis : once_axes().list()) axes.push_back(axis);
  return axes;
}

/// The script by which a worker takes elements into its processing list, if its lease is still its own. A queue gives
/// the part that pops up to ARGV[1] of them from KEYS[1] into `elements`.
class Take {
 public:
  Take(Connection& connection, const QueueConfig& config, const Redelivery& redelivery, std::string_view pop)
      : script_(connection, fmt::format("{}{}{}", kCheck, pop, kHold)),
        worker_(redelivery.worker()),
        tasks_(KeyNames(config.redis.prefix).tasks()),
        processing_(KeyNames(config.redis.prefix).processing(worker_)),
        leases_(KeyNames(config.redis.prefix).leases()),
        lifetime_(config.redis.shared ? redis::kLifetimeMs : "0") {}
  void append(Connection& connection, std::size_t elements) const {
    script_.append(connection, {tasks_, processing_, leases_}, {std::to_string(elements), worker_, lifetime_});
  }
  const std::string& tasks() const { return tasks_; }
  const std::string& processing() const { return processing_; }

 private:
  // KEYS: tasks, processing, leases; ARGV: how many, the worker, ms that the processing list lives or 0.
  static constexpr std::string_view kCheck = "if not redis.call('ZSCORE', KEYS[3], ARGV[2]) then return nil end\n";
  static constexpr std::string_view kHold = R"lua(
if #elements == 0 then return nil end
for i = 1, #elements, 4000 do  -- Lua's stack takes no more
  redis.call('RPUSH', KEYS[2], unpack(elements, i, math.min(i + 3999, #elements)))
end
if ARGV[3] ~= '0' then redis.call('PEXPIRE', KEYS[2], ARGV[3]) end
return elements
)lua";

  redis::Script script_;
  std::string worker_, tasks_, processing_, leases_, lifetime_;
};

/// Takes a batch as the script Take does, by as many LMOVE in a transaction. Lua copies each element several times: of
/// 4 KiB it takes the server three times as long as LMOVE does, of 100 B half as long.
class Moves {
 public:
  static constexpr std::size_t kLeastBytes = 512;  // of an element on average
  static constexpr std::size_t kMost = 64;         // elements at once

  Moves(Connection& connection, const RedisSettings& redis, const std::string& worker)
      : settle_(connection, kSettle),
        worker_(worker),
        tasks_(KeyNames(redis.prefix).tasks()),
        processing_(KeyNames(redis.prefix).processing(worker)),
        leases_(KeyNames(redis.prefix).leases()),
        lifetime_(redis.shared ? redis::kLifetimeMs : "0") {}
  /// Returns how many replies there will be. The last is an array: of every element or nil, and 1; 0 in its place when
  /// the lease was gone, and all lies where it was.
  unsigned append(Connection& connection, std::size_t elements) const {
    connection.append({"MULTI"});
    for (std::size_t i = 0; i < elements; ++i) {
      connection.append({"LMOVE", tasks_, processing_, "RIGHT", "RIGHT"});
    }
    settle_.append(connection, {tasks_, processing_, leases_}, {worker_, lifetime_});
    connection.append({"EXEC"});
    return static_cast<unsigned>(elements + 3);
  }

 private:
  // Whose lease is gone has taken nothing: what lies in its list was moved just now. KEYS: tasks, processing, leases;
  // ARGV: the worker, ms that the processing list lives or 0.
  static constexpr std::string_view kSettle = R"lua(
if not redis.call('ZSCORE', KEYS[3], ARGV[1]) then
  while redis.call('LMOVE', KEYS[2], KEYS[1], 'RIGHT', 'RIGHT') do end
  return 0
end
if ARGV[2] ~= '0' then redis.call('PEXPIRE', KEYS[2], ARGV[2]) end
return 1
)lua";

  redis::Script settle_;
  std::string worker_, tasks_, processing_, leases_, lifetime_;
};

/// Batches come back in the order in which they were taken, so what is done is always the processing list's head. It is
/// cut off only by whom it still belongs to.
class ProcessingAcks {
 public:
  ProcessingAcks(Connection& connection, const KeyNames& names, const Redelivery& redelivery)
      : trim_(connection, kTrim),
        worker_(redelivery.worker()),
        processing_(names.processing(worker_)),
        leases_(names.leases()) {}
  void done(Connection& connection, const std::vector<std::string>& ids) const {
    if (!ids.empty()) trim_.append(connection, {processing_, leases_}, {std::to_string(ids.size()), worker_});
  }
  void answer(Connection&, const redisReply&) const {}

 private:
  static constexpr std::string_view kTrim = R"lua(
if not redis.call('ZSCORE', KEYS[2], ARGV[2]) then return 0 end
redis.call('LTRIM', KEYS[1], ARGV[1], -1)
return 1
)lua";
  redis::Script trim_;
  std::string worker_, processing_, leases_;
};

}  // namespace feedrate::redis_queue
