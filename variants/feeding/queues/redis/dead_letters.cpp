#include <fmt/format.h>

#include <charconv>

#include "common/redis/cluster.hpp"
#include "common/redis/connection.hpp"
#include "common/redis/service.hpp"
#include "variants/feeding/queues/redis/elements.hpp"
#include "variants/feeding/queues/redis/external_workers.hpp"

namespace feedrate::redis_queue {
namespace {

constexpr std::uint64_t kPage = 1000;

// KEYS: dead, delayed, delays; ARGV[1]: the letter. The task goes to `delayed`, where workers of every kind of queue
// find it due.
constexpr std::string_view kRequeue = R"lua(
local letter = redis.call('XRANGE', KEYS[1], ARGV[1], ARGV[1])[1]
if not letter then return 0 end
for i = 1, #letter[2], 2 do
  if letter[2][i] == 'm' then
    local task = letter[2][i + 1]
    local number = redis.call('INCR', KEYS[3])
    redis.call('ZADD', KEYS[2], 0, string.format('%016d', number) .. with_attempts(task, 0))
  end
end
redis.call('XDEL', KEYS[1], letter[1])
return 1
)lua";

DeadLetter letter_of(const redisReply& entry) {
  DeadLetter letter;
  letter.letter_id = redis::text(*entry.element[0]);  // Unix time in ms and a sequence number
  std::from_chars(letter.letter_id.data(), letter.letter_id.data() + letter.letter_id.size(), letter.time_ms);
  const redisReply& fields = *entry.element[1];
  for (std::size_t i = 0; i + 1 < fields.elements; i += 2) {
    const std::string_view name = redis::text(*fields.element[i]), value = redis::text(*fields.element[i + 1]);
    if (name == "m") letter.task = value;
    if (name == "error") letter.error = value;
    if (name == "worker") letter.worker = value;
    if (name == "history") letter.history = value;
    if (name == "attempts") std::from_chars(value.data(), value.data() + value.size(), letter.attempts);
  }
  if (const Parsed task = parse(letter.task); !task.bytes.empty()) {
    letter.message = {task.header.id, task.extension.deadline_ms, std::string(task.payload)};
  }
  return letter;
}

class DeadLetters final : public DeadLetterBox {
 public:
  explicit DeadLetters(const RedisSettings& settings)
      : names_(settings.prefix), connection_(redis::Cluster(settings.url).server_of(settings.prefix)) {}
  std::uint64_t count() override;
  std::size_t for_each(std::uint64_t most, const std::function<void(const DeadLetter&)>&) override;
  std::optional<DeadLetter> find(const std::string& letter_id) override;
  bool requeue(const std::string& letter_id) override;
  bool purge(const std::string& letter_id) override;

 private:
  KeyNames names_;
  redis::Connection connection_;
};

std::uint64_t DeadLetters::count() {
  return static_cast<std::uint64_t>(connection_.command({"XLEN", names_.dead()})->integer);
}

std::size_t DeadLetters::for_each(std::uint64_t most, const std::function<void(const DeadLetter&)>& f) {
  std::size_t visited = 0;
  std::string from = "-";
  while (visited < most) {
    const std::string page = std::to_string(std::min<std::uint64_t>(kPage, most - visited));
    const auto reply = connection_.command({"XRANGE", names_.dead(), from, "+", "COUNT", page});
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements == 0) break;
    for (std::size_t i = 0; i < reply->elements; ++i, ++visited) {
      const DeadLetter letter = letter_of(*reply->element[i]);
      from = "(" + letter.letter_id;
      f(letter);
    }
  }
  return visited;
}

std::optional<DeadLetter> DeadLetters::find(const std::string& letter_id) {
  const auto reply = connection_.command({"XRANGE", names_.dead(), letter_id, letter_id});
  if (reply->type != REDIS_REPLY_ARRAY || reply->elements == 0) return std::nullopt;
  return letter_of(*reply->element[0]);
}

bool DeadLetters::requeue(const std::string& letter_id) {
  const auto letter = find(letter_id);
  if (!letter) return false;
  if (!letter->message) throw Failure(fmt::format("letter {} does not hold a message", letter_id));
  const std::string dead = names_.dead(), delayed = names_.delayed(), delays = names_.delays();
  return connection_.command({"EVAL", script_of({kRequeue}), "3", dead, delayed, delays, letter_id})->integer != 0;
}

bool DeadLetters::purge(const std::string& letter_id) {
  return connection_.command({"XDEL", names_.dead(), letter_id})->integer != 0;
}

}  // namespace

std::unique_ptr<DeadLetterBox> dead_letters(const Service& service) {
  return std::make_unique<DeadLetters>(redis::settings_of(&service));
}

}  // namespace feedrate::redis_queue
