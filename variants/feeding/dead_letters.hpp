#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace feedrate {

/// A task that was given up.
struct DeadLetter {
  std::string letter_id;      ///< its name there
  std::uint64_t time_ms = 0;  ///< Unix time when it was given up
  std::string task;           ///< as the client sent it; how often it was delivered is noted in its header
  std::string error, worker, history;
  unsigned attempts = 0;
  struct Message {
    std::uint64_t id = 0, deadline_ms = 0;
    std::string payload;
  };
  std::optional<Message> message = {};  ///< nothing if the task is none
};

/// The dead letters of one queue, for people. Throws ServiceFailure.
class DeadLetterBox {
 public:
  virtual ~DeadLetterBox() = default;
  virtual std::uint64_t count() = 0;
  /// The oldest first, at most `most` of them. Returns how many there were.
  virtual std::size_t for_each(std::uint64_t most, const std::function<void(const DeadLetter&)>&) = 0;
  virtual std::optional<DeadLetter> find(const std::string& letter_id) = 0;
  /// Gives a task back to its queue, as if it had never been delivered; false: there is no such letter. What holds no
  /// message can't be given back: Failure.
  virtual bool requeue(const std::string& letter_id) = 0;
  virtual bool purge(const std::string& letter_id) = 0;
};

}  // namespace feedrate
