#pragma once
#include "variants/feeding/queues/redis/processing.hpp"

namespace feedrate::redis_queue {

/// Takes a batch as the script Take does, but with one LMOVE per element in a transaction. Lua copies each element
/// several times: for elements of 4 KiB the script takes the server two to three times as long as LMOVE, but for 100 B
/// only half as long.
class Moves {
 public:
  static constexpr std::size_t kLeastBytes = 512;  // average element size above which moves are used
  static constexpr std::size_t kMax = 64;          // elements per transaction

  Moves(Connection& connection, TakeKeys keys) : settle_(connection, kSettle), keys_(std::move(keys)) {}
  /// Returns the number of replies. The last one is an array with each element or nil, followed by 1. If the lease was
  /// lost, the last entry is 0 and all elements are back in the queue.
  unsigned append(Connection& connection, std::size_t elements) const {
    connection.append({"MULTI"});
    for (std::size_t i = 0; i < elements; ++i) {
      connection.append({"LMOVE", keys_.tasks, keys_.processing, "RIGHT", "RIGHT"});
    }
    settle_.append(connection, {keys_.tasks, keys_.processing, keys_.leases}, {keys_.worker, keys_.lifetime});
    connection.append({"EXEC"});
    return static_cast<unsigned>(elements + 3);
  }

 private:
  // Without a lease the worker takes nothing: everything in its list was moved just now and is returned. KEYS: tasks,
  // processing, leases; ARGV: the worker, lifetime of the processing list in ms or 0.
  static constexpr std::string_view kSettle = R"lua(
if not redis.call('ZSCORE', KEYS[3], ARGV[1]) then
  while redis.call('LMOVE', KEYS[2], KEYS[1], 'RIGHT', 'RIGHT') do end
  return 0
end
if ARGV[2] ~= '0' then redis.call('PEXPIRE', KEYS[2], ARGV[2]) end
return 1
)lua";

  redis::Script settle_;
  TakeKeys keys_;
};

}  // namespace feedrate::redis_queue
