#pragma once
#include <functional>
#include <optional>
#include <string>

#include "common/redis/connection.hpp"
#include "variants/feeding/queues/redis/elements.hpp"

namespace feedrate::redis_queue {

/// A task that was given up.
struct DeadLetter {
  std::string letter_id;  ///< of the stream's entry: unix time in ms, and a number
  std::string task;       ///< as the client sent it; how often it was delivered is noted in its header
  std::string error, worker, history;
  unsigned attempts = 0;
};

/// The dead letters of one queue, for people.
class DeadLetters {
 public:
  DeadLetters(const std::string& url, const std::string& prefix);
  std::uint64_t count();
  /// The oldest first, at most `most` of them, beginning behind `after`. Returns how many there were.
  std::size_t for_each(std::uint64_t most, const std::function<void(const DeadLetter&)>&);
  std::optional<DeadLetter> find(const std::string& letter_id);
  /// Gives a task back to its queue, as if it had never been delivered; false: there is no such letter. What holds no
  /// message can't be given back: Failure.
  bool requeue(const std::string& letter_id);
  bool purge(const std::string& letter_id);

 private:
  KeyNames names_;
  redis::Connection connection_;
};

}  // namespace feedrate::redis_queue
