#pragma once
#include "variants/feeding/queues/redis/processing.hpp"

namespace feedrate::redis_queue {

/// Takes a batch as the script Take does, by as many LMOVE in a transaction. Lua copies each element several times: of
/// 4 KiB it takes the server two to three times as long as LMOVE does, of 100 B half as long
/// (tests/trials/list_moves.py).
class Moves {
 public:
  static constexpr std::size_t kLeastBytes = 512;  // of an element on average
  static constexpr std::size_t kMost = 64;         // elements at once

  Moves(Connection& connection, TakeKeys keys) : settle_(connection, kSettle), keys_(std::move(keys)) {}
  /// Returns how many replies there will be. The last is an array: of every element or nil, and 1; 0 in its place when
  /// the lease was gone, and all lies where it was.
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
  TakeKeys keys_;
};

}  // namespace feedrate::redis_queue
