#pragma once
#include "variants/feeding/queues/redis/queue.hpp"

namespace feedrate::redis_queue {

using redis::Connection;

/// A Dialect's `Tasks` if tasks are read in the same way as results.
template <class Results>
struct TasksAsResults : Results {
  TasksAsResults(Connection&, const RedisConfig& config, const Redelivery&)
      : Results(config, KeyNames(config.redis.prefix).tasks()) {}
};

/// Tasks and results are elements of Redis lists: one side adds many elements with one LPUSH, the other takes them with
/// RPOP and a count. A reader that found fewer elements than it requested waits in BRPOP, so the server hands a lone
/// message over directly. A popped element is gone from the server.
struct ListDialect {
  static constexpr auto kAddCeiling = "redis_list_push_per_second", kTakeCeiling = "redis_list_pop_per_second";
  static constexpr bool kVanishes = true;
  static constexpr std::string_view kTrimResults = "";
  static constexpr bool kKeeps = false;
  static constexpr auto kKind = "list";
  static std::vector<Axis> axes() { return own_axes().list(); }
  // LREM searches from the head, so it finds recently pushed elements immediately.
  static constexpr auto kWithdraw = R"lua(
    local removed, at = 0, 0
    while true do
      local elements = redis.call('LRANGE', KEYS[1], at, at + 999)
      if #elements == 0 then return removed end
      for _, element in ipairs(elements) do
        if is_of_first(ARGV[1], element) then
          removed = removed + redis.call('LREM', KEYS[1], 1, element)
        else
          at = at + 1
        end
      end
    end)lua";
  static void create(Connection&, const std::string&, const std::string&) {}
  static void push_results(Connection& connection, std::string_view key, const ConstMessages& messages,
                           std::size_t pack) {
    connection.begin_command(2 + (messages.count + pack - 1) / pack);
    connection.add_word("LPUSH");
    connection.add_word(key);
    for_each_element(messages, pack, [&](std::string_view element) { connection.add_word(element); });
  }
  using Push = PushAsResults<ListDialect>;
  static void ask_length(Connection& connection, std::string_view key) { connection.append({"LLEN", key}); }

  class Results {
   public:
    static constexpr auto kAddCeiling = "redis_list_push_per_second", kTakeCeiling = "redis_list_pop_per_second";
    Results(const RedisConfig&, std::string key) : key_(std::move(key)) {}
    unsigned request(Connection& connection, std::size_t elements) {
      asked_ = elements;
      if (drained_) {
        connection.append({"BRPOP", key_, fmt::format("{}", kBlockMs / 1000.0)});
      } else {
        connection.append({"RPOP", key_, std::to_string(elements)});
      }
      return 1;
    }
    void parse(const redisReply& reply, std::vector<Element>& elements) {
      if (reply.type != REDIS_REPLY_ARRAY) {  // nil: the list is empty
        drained_ = true;
        return;
      }
      // BRPOP answers with the key and one element, RPOP with elements only.
      for (std::size_t i = drained_ ? 1 : 0; i < reply.elements; ++i) {
        elements.push_back({redis::text(*reply.element[i]), {}});
      }
      drained_ = !drained_ && reply.elements < asked_;
    }

   private:
    std::string key_;
    std::size_t asked_ = 0;
    bool drained_ = false;
  };
  using Tasks = TasksAsResults<Results>;

  class Acks {
   public:
    Acks(Connection&, const KeyNames&, const Redelivery&) {}
    void done(Connection&, const std::vector<std::string>&) {}
    void answer(Connection&, const redisReply&) {}
  };
};

}  // namespace feedrate::redis_queue
