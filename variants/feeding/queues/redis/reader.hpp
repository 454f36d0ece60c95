#pragma once
#include <spdlog/spdlog.h>

#include <cstring>
#include <string>
#include <vector>

#include "common/clock.hpp"
#include "common/redis/connection.hpp"
#include "variants/feeding/queues/redis/elements.hpp"

namespace feedrate::redis_queue {

inline constexpr int kBlockMs = 50;  // a blocking read returns at least this often

struct Element {
  std::string_view bytes;
  std::string_view id;  ///< id of a stream entry, or another value for Acks; empty if nothing is to be acknowledged
};

/// A task that the worker rejects and answers itself, without the device.
struct Rejected {
  std::string bytes;  ///< the task as received
  Header header{};
  Fault fault = Fault::none;  ///< none: the bytes are not a message and cannot be answered
  std::string why;
  std::size_t position = 0;  ///< number of messages before this task in its batch
};

/// The data that a worker records about the tasks that it reads, in addition to the messages.
struct ClaimedTasks {
  std::vector<std::string> ids;  ///< ids of the elements that were read completely
  std::vector<Rejected> rejected;
  std::vector<std::uint64_t> deadlines;  ///< indexed by message; empty if no message has a deadline
  bool retried = false;                  ///< whether any message was delivered before

  void clear() {
    ids.clear();
    rejected.clear();
    deadlines.clear();
    retried = false;
  }
};

/// Copies one message of a task element into the first slot. Returns false if it rejects the message. `index` is the
/// message's place in the batch.
inline bool lay_task(const Parsed& task, Messages slot, ClaimedTasks& taken, std::size_t index) {
  const TaskInfo info = info_of(task.header);
  const auto reject = [&](Fault fault, std::string why) {
    taken.rejected.push_back({std::string(task.bytes), task.header, fault, std::move(why), index});
    return false;
  };
  if (info.version > kNewestVersion) {
    return reject(Fault::bad_version,
                  fmt::format("version {} of the format; this worker supports 0 to {}", info.version, kNewestVersion));
  }
  if (task.payload.size() > slot.stride - sizeof(Header)) {
    return reject(Fault::too_long, fmt::format("{} bytes of payload; this worker accepts at most {}",
                                               task.payload.size(), slot.stride - sizeof(Header)));
  }
  if (task.extension.deadline_ms != 0) {
    if (unix_ms() >= task.extension.deadline_ms) return reject(Fault::expired, "its deadline had passed");
    taken.deadlines.resize(index + 1);
    taken.deadlines[index] = task.extension.deadline_ms;
  }
  taken.retried |= info.attempts != 0;
  std::memcpy(slot.base, &task.header, sizeof(Header));
  std::memcpy(slot.payload(0), task.payload.data(), task.payload.size());
  return true;
}

/// Copies the messages of a task element into slots, starting at `offset`, until the slots are full or the element
/// ends. Advances `offset` and returns how many messages it copied. `first` is the first slot's place in the batch. The
/// function never reads beyond `bytes`, even if they are malformed.
inline std::size_t unpack_tasks(std::string_view bytes, std::size_t& offset, Messages slots, ClaimedTasks& taken,
                                std::size_t first) {
  std::size_t n = 0;
  while (n < slots.count && offset < bytes.size()) {
    const Parsed task = parse(bytes.substr(offset));
    if (task.bytes.empty()) {
      taken.rejected.push_back({std::string(bytes.substr(offset)),
                                {},
                                Fault::none,
                                "not a message: shorter than its header says",
                                first + n});
      offset = bytes.size();
      break;
    }
    offset = std::min(bytes.size(), offset + task.stride);
    n += lay_task(task, slots.from(n).first(1), taken, first + n) ? 1 : 0;
  }
  return n;
}

/// Does the same for results.
inline std::size_t unpack_results(std::string_view bytes, std::size_t& offset, Messages slots) {
  std::size_t n = 0;
  while (n < slots.count && offset < bytes.size()) {
    Header header{};
    const std::size_t left = bytes.size() - offset;
    std::memcpy(&header, bytes.data() + offset, std::min(left, sizeof header));
    const std::size_t length = payload_bytes(header);
    if (left < sizeof header || left - sizeof header < length) {
      spdlog::warn("dropped {} bytes that are not a result: shorter than their header says", left);
      offset = bytes.size();
      break;
    }
    // A result longer than the slot keeps its length in the header, so verification rejects it.
    const std::size_t kept = std::min(length, slots.stride - sizeof header);
    std::memcpy(slots.base + n * slots.stride, bytes.data() + offset, sizeof header + kept);
    offset = std::min(bytes.size(), offset + stride_of(length));
    ++n;
  }
  return n;
}

/// Reads elements from one key and copies their messages into slots, always one request ahead. The dialect supplies
/// `Source`:
///
///     unsigned request(Connection&, elements)
/// appends commands that request up to `elements` more and returns the number of commands; 0 if none is allowed now.
/// Integer and status replies are skipped.
///
///     void parse(const redisReply&, vector<Element>&)
/// splits the reply into elements.
template <class Source>
class Reader {
 public:
  Reader(redis::Connection& connection, Source source, std::size_t elements)
      : connection_(connection), source_(std::move(source)), max_(elements) {}

  /// Copies messages that have arrived into `slots` and returns their number. With `taken` they are read as tasks,
  /// otherwise as results. Never blocks.
  std::size_t read(Messages slots, ClaimedTasks* taken) {
    std::size_t filled = 0;
    while (filled < slots.count) {
      if (at_ == elements_.size() && !next_reply()) break;
      const std::string_view bytes = elements_[at_].bytes;
      filled += taken != nullptr ? unpack_tasks(bytes, offset_, slots.from(filled), *taken, filled)
                                 : unpack_results(bytes, offset_, slots.from(filled));
      if (offset_ < elements_[at_].bytes.size()) break;  // the slots are full and the element has more
      if (taken != nullptr && !elements_[at_].id.empty()) taken->ids.emplace_back(elements_[at_].id);
      ++at_;
      offset_ = 0;
    }
    return filled;
  }
  /// Stops sending requests. True once every requested element has been read.
  bool finish() {
    finishing_ = true;
    return expected_ == 0 && at_ == elements_.size();
  }

 private:
  bool next_reply() {
    if (expected_ == 0 && !finishing_) request();
    while (expected_ != 0) {
      redis::Reply reply = connection_.try_read();
      if (!reply) return false;
      --expected_;
      // The reply to a trim before the read, or to a command in a transaction.
      if (reply->type == REDIS_REPLY_INTEGER || reply->type == REDIS_REPLY_STATUS) continue;
      reply_ = std::move(reply);
      elements_.clear();
      at_ = 0;
      source_.parse(*reply_, elements_);
      if (!finishing_) request();
      return !elements_.empty();
    }
    return false;
  }
  void request() {
    expected_ = source_.request(connection_, max_);
    connection_.flush();
  }
  redis::Connection& connection_;
  Source source_;
  std::size_t max_;
  redis::Reply reply_;
  std::vector<Element> elements_;
  std::size_t at_ = 0, offset_ = 0;
  unsigned expected_ = 0;  // outstanding replies to the last request
  bool finishing_ = false;
};

}  // namespace feedrate::redis_queue
