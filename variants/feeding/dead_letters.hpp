#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace feedrate {

/// A task that was abandoned after its last attempt.
struct DeadLetter {
  std::string letter_id;      ///< id of the letter in the queue's store
  std::uint64_t time_ms = 0;  ///< Unix time when the task was abandoned
  std::string task;           ///< the task as the client sent it; its header counts the deliveries
  std::string error, worker, history;
  unsigned attempts = 0;
  struct Message {
    std::uint64_t id = 0, deadline_ms = 0;
    std::string payload;
  };
  std::optional<Message> message = {};  ///< empty if the task is not a valid message
};

/// The dead letters of one queue, for inspection by users. Throws ServiceFailure.
class DeadLetterBox {
 public:
  virtual ~DeadLetterBox() = default;
  virtual std::uint64_t count() = 0;
  /// Visits up to `most` letters, oldest first. Returns the number visited.
  virtual std::size_t for_each(std::uint64_t most, const std::function<void(const DeadLetter&)>&) = 0;
  virtual std::optional<DeadLetter> find(const std::string& letter_id) = 0;
  /// Returns a task to its queue as if it had never been delivered. Returns false if the letter does not exist. Throws
  /// Failure if the letter does not hold a message.
  virtual bool requeue(const std::string& letter_id) = 0;
  virtual bool purge(const std::string& letter_id) = 0;
};

}  // namespace feedrate
