#include <deque>

#include "variants/queues/redis_queue.hpp"

namespace feedrate::redis_queue {
namespace {

constexpr auto kField = "m";  // the one field of every entry

/// Tasks and results as entries of Redis streams: pipelined XADD; workers read through a consumer group and acknowledge
/// after the result is on its way, so a worker that died gets its entries again under its old name: at least once.
/// Collectors read their stream alone, by XREAD. What all have done with is trimmed.
struct StreamDialect {
  static constexpr auto kAddFloor = "redis_stream_add_per_second", kTakeFloor = "redis_stream_read_per_second";
  static constexpr bool kVanishes = false;
  static constexpr auto kWithdraw = R"lua(
    local removed, from = 0, '-'
    while true do
      local entries = redis.call('XRANGE', KEYS[1], from, '+', 'COUNT', 1000)
      if #entries == 0 then return removed end
      for _, entry in ipairs(entries) do
        local message = entry[2][2]
        if #message >= 8 and message:byte(7) + 256 * message:byte(8) < tonumber(ARGV[1]) then
          removed = removed + redis.call('XDEL', KEYS[1], entry[1])
        end
      end
      from = '(' .. entries[#entries][1]
    end)lua";
  static void create(Connection& connection, const std::string& key, const std::string& group) {
    try {
      connection.command({"XGROUP", "CREATE", key, group, "0", "MKSTREAM"});
    } catch (const Failure& failure) {
      if (std::string_view(failure.what()).find("BUSYGROUP") == std::string_view::npos) throw;  // else: it is there
    }
  }
  static void push(Connection& connection, std::string_view key, const ConstMessages& messages, std::size_t pack) {
    for_each_element(messages, pack, [&](std::string_view element) {
      connection.append({"XADD", key, "*", kField, element});
    });
  }
  static void ask_length(Connection& connection, std::string_view key) { connection.append({"XLEN", key}); }

  class Source {
   public:
    Source(std::string key, std::string group, std::string consumer)
        : key_(std::move(key)), group_(std::move(group)), consumer_(std::move(consumer)) {}
    unsigned request(Connection& connection, std::size_t elements) {
      const std::string count = std::to_string(elements), block = std::to_string(kBlockMs);
      if (!group_.empty()) {
        // First what this consumer was given in an earlier life and never acknowledged, then new entries.
        connection.append({"XREADGROUP", "GROUP", group_, consumer_, "COUNT", count, "BLOCK", block, "STREAMS", key_,
                           recovering_ ? std::string_view(last_) : ">"});
        return 1;
      }
      connection.append({"XTRIM", key_, "MINID", last_});
      connection.append({"XREAD", "COUNT", count, "BLOCK", block, "STREAMS", key_, last_});
      return 2;
    }
    void parse(const redisReply& reply, std::vector<Element>& elements) {
      if (reply.type != REDIS_REPLY_ARRAY || reply.elements == 0) return;  // nil: nothing new
      const redisReply& entries = *reply.element[0]->element[1];
      for (std::size_t i = 0; i < entries.elements; ++i) {
        const redisReply& entry = *entries.element[i];
        last_ = redis::text(*entry.element[0]);
        elements.push_back({message_of(*entry.element[1]), redis::text(*entry.element[0])});
      }
      if (entries.elements == 0) recovering_ = false;
    }

   private:
    /// Empty for an entry without our field, or one that was deleted while it was pending: acknowledged all the same.
    static std::string_view message_of(const redisReply& fields) {
      for (std::size_t f = 0; f + 1 < fields.elements; f += 2) {
        if (redis::text(*fields.element[f]) == kField) return redis::text(*fields.element[f + 1]);
      }
      spdlog::warn("dropped a stream entry without the field '{}'", kField);
      return {};
    }

    std::string key_, group_, consumer_;
    std::string last_ = "0";
    bool recovering_ = true;
  };

  /// Acknowledges, then trims: everything below the oldest entry that any worker still holds is done with. Entries are
  /// delivered in the order of their ids, so when nothing is pending, all up to the last one seen here is done with.
  class Acks {
   public:
    Acks(std::string key, std::string group) : key_(std::move(key)), group_(std::move(group)) {}
    void done(Connection& connection, const std::vector<std::string>& ids) {
      if (ids.empty()) return;
      connection.begin_command(3 + ids.size());
      for (const std::string_view word : {std::string_view("XACK"), std::string_view(key_), std::string_view(group_)}) {
        connection.add_word(word);
      }
      for (const auto& id : ids) connection.add_word(id);
      last_seen_.push_back(ids.back());
      connection.append({"XPENDING", key_, group_});
    }
    void answer(Connection& connection, const redisReply& reply) {
      if (reply.type != REDIS_REPLY_ARRAY || reply.elements < 2) return;  // only XPENDING answers with an array
      const redisReply& oldest = *reply.element[1];
      const std::string& last = last_seen_.front();  // what was known when the question was sent, not what is by now
      connection.append({"XTRIM", key_, "MINID", oldest.type == REDIS_REPLY_STRING ? redis::text(oldest) : last});
      last_seen_.pop_front();
    }

   private:
    std::string key_, group_;
    std::deque<std::string> last_seen_;  // the last entry acknowledged, for each XPENDING on its way
  };
};

const QueueRegistration registered("redis_stream",
                                   entry_of<StreamDialect>("Redis streams: XADD, consumer group, XACK, trimming",
                                                           Delivery::at_least_once));

}  // namespace
}  // namespace feedrate::redis_queue
