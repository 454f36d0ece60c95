#pragma once
#include "variants/feeding/queues/redis/list.hpp"

/// Shared parts of queues in which each worker keeps the tasks that it is serving in its own processing list.
namespace feedrate::redis_queue {

inline std::vector<Axis> processing_axes() {
  std::vector<Axis> axes = own_axes().list();
  for (const Axis& axis : once_axes().list()) axes.push_back(axis);
  return axes;
}

/// The arguments for taking tasks: the worker's name, the keys, and the lifetime of its processing list in ms or 0.
struct TakeKeys {
  TakeKeys(const RedisSettings& redis, const std::string& name)
      : worker(name),
        tasks(KeyNames(redis.prefix).tasks()),
        processing(KeyNames(redis.prefix).processing(name)),
        leases(KeyNames(redis.prefix).leases()),
        lifetime(redis.shared ? redis::kLifetimeMs : "0") {}
  std::string worker, tasks, processing, leases, lifetime;
};

/// The script that moves elements into the worker's processing list, if the worker still holds its lease. A queue
/// supplies the part that pops up to ARGV[1] elements from KEYS[1] into `elements`.
class Take {
 public:
  Take(Connection& connection, const RedisConfig& config, const Redelivery& redelivery, std::string_view pop)
      : script_(connection, fmt::format("{}{}{}", kCheck, pop, kHold)), keys_(config.redis, redelivery.worker()) {}
  void append(Connection& connection, std::size_t elements) const {
    script_.append(connection, {keys_.tasks, keys_.processing, keys_.leases},
                   {std::to_string(elements), keys_.worker, keys_.lifetime});
  }
  const TakeKeys& keys() const { return keys_; }

 private:
  // KEYS: tasks, processing, leases; ARGV: how many, the worker, lifetime of the processing list in ms or 0.
  static constexpr std::string_view kCheck = "if not redis.call('ZSCORE', KEYS[3], ARGV[2]) then return nil end\n";
  static constexpr std::string_view kHold = R"lua(
if #elements == 0 then return nil end
for i = 1, #elements, 4000 do  -- the limit of Lua's stack
  redis.call('RPUSH', KEYS[2], unpack(elements, i, math.min(i + 3999, #elements)))
end
if ARGV[3] ~= '0' then redis.call('PEXPIRE', KEYS[2], ARGV[3]) end
return elements
)lua";

  redis::Script script_;
  TakeKeys keys_;
};

/// Batches complete in the order in which they were taken, so completed tasks are always at the head of the processing
/// list. A worker trims the list only while it still holds its lease.
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
