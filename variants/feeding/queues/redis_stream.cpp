#include <deque>

#include "variants/feeding/queues/redis/queue.hpp"

namespace feedrate::redis_queue {
namespace {

using redis::Connection;

constexpr auto kField = "m";  // the only field of every entry

/// Tasks and results are entries of Redis streams, added by pipelined XADD. Workers read through a consumer group and
/// acknowledge a task once the server has its result: delivery is at least once. Tasks that a dead worker held stay
/// pending in the group, and another worker takes them over after that consumer's lease expires (Redelivery). Each
/// collector is the only reader of its stream and uses XREAD. Entries are trimmed once every reader is done with them.
struct StreamDialect {
  static constexpr auto kAddCeiling = "redis_stream_add_per_second", kTakeCeiling = "redis_stream_read_per_second";
  static constexpr bool kVanishes = false;
  // Reading a stream removes nothing, and a key in use does not expire. An entry's id starts with the server's time.
  // Servers before 6.2 do not support MINID.
  static constexpr std::string_view kTrimResults = R"lua(
local time = redis.call('TIME')
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)
redis.pcall('XTRIM', KEYS[1], 'MINID', '~', math.max(0, now_ms - ARGV[1])))lua";
  static constexpr bool kKeeps = true;
  static constexpr auto kKind = "stream";
  static std::vector<Axis> axes() { return own_axes().list(); }
  static constexpr auto kWithdraw = R"lua(
    local removed, from = 0, '-'
    while true do
      local entries = redis.call('XRANGE', KEYS[1], from, '+', 'COUNT', 1000)
      if #entries == 0 then return removed end
      for _, entry in ipairs(entries) do
        if is_of_first(ARGV[1], entry[2][2]) then
          removed = removed + redis.call('XDEL', KEYS[1], entry[1])
        end
      end
      from = '(' .. entries[#entries][1]
    end)lua";
  static void create(Connection& connection, const std::string& key, const std::string& group) {
    try {
      connection.command({"XGROUP", "CREATE", key, group, "0", "MKSTREAM"});
    } catch (const Failure& failure) {
      if (std::string_view(failure.what()).find("BUSYGROUP") == std::string_view::npos)
        throw;  // else: the group exists
    }
  }
  static void push_results(Connection& connection, std::string_view key, const ConstMessages& messages,
                           std::size_t pack) {
    for_each_element(messages, pack, [&](std::string_view element) {
      connection.append({"XADD", key, "*", kField, element});
    });
  }
  using Push = PushAsResults<StreamDialect>;
  static void ask_length(Connection& connection, std::string_view key) { connection.append({"XLEN", key}); }

  /// Reads the entries of a stream.
  class Entries {
   public:
    explicit Entries(std::string key) : key_(std::move(key)) {}
    /// Extracts the entries of a reply to XREAD or XREADGROUP.
    void parse(const redisReply& reply, std::vector<Element>& elements) {
      if (reply.type != REDIS_REPLY_ARRAY || reply.elements == 0) return;  // nil: no new entries
      const redisReply& entries = *reply.element[0]->element[1];
      for (std::size_t i = 0; i < entries.elements; ++i) {
        const redisReply& entry = *entries.element[i];
        last_ = redis::text(*entry.element[0]);
        elements.push_back({message_of(*entry.element[1]), redis::text(*entry.element[0])});
      }
    }

   protected:
    std::string key_, last_ = "0";  // the id of the last entry

   private:
    /// Returns the message of an entry. It is empty if the entry lacks the field or was deleted while it was pending;
    /// such an entry is acknowledged as well.
    std::string_view message_of(const redisReply& fields) {
      for (std::size_t f = 0; f + 1 < fields.elements; f += 2) {
        if (redis::text(*fields.element[f]) == kField) return redis::text(*fields.element[f + 1]);
      }
      warnings_.warn(fmt::format("dropped a stream entry without the field '{}'", kField));
      return {};
    }
    LimitedWarnings warnings_;
  };

  /// A stream with a single reader, its collector, which trims the entries that it has read.
  struct Results : Entries {
    static constexpr auto kAddCeiling = "redis_stream_add_per_second", kTakeCeiling = "redis_stream_read_per_second";
    Results(const RedisConfig&, std::string key) : Entries(std::move(key)) {}
    unsigned request(Connection& connection, std::size_t elements) const {
      connection.append({"XTRIM", key_, "MINID", last_});
      connection.append(
          {"XREAD", "COUNT", std::to_string(elements), "BLOCK", std::to_string(kBlockMs), "STREAMS", key_, last_});
      return 2;
    }
  };

  struct Tasks : Entries {
    Tasks(Connection&, const RedisConfig& config, const Redelivery& redelivery)
        : Entries(KeyNames(config.redis.prefix).tasks()), redelivery_(redelivery) {}
    unsigned request(Connection& connection, std::size_t elements) const {
      if (!redelivery_.alive()) return 0;  // this worker may be presumed dead by now
      connection.append({"XREADGROUP", "GROUP", kGroup, redelivery_.worker(), "COUNT", std::to_string(elements),
                         "BLOCK", std::to_string(kBlockMs), "STREAMS", key_, ">"});
      return 1;
    }
    const Redelivery& redelivery_;
  };

  /// Acknowledges tasks, then trims every entry before the oldest one that any worker still holds. Entries are
  /// delivered in the order of their ids, so if nothing is pending, all entries up to the last one seen here are
  /// finished.
  class Acks {
   public:
    Acks(Connection&, const KeyNames& names, const Redelivery&) : key_(names.tasks()) {}
    void done(Connection& connection, const std::vector<std::string>& ids) {
      if (ids.empty()) return;
      connection.begin_command(3 + ids.size());
      for (const std::string_view word : {std::string_view("XACK"), std::string_view(key_), std::string_view(kGroup)}) {
        connection.add_word(word);
      }
      for (const auto& id : ids) connection.add_word(id);
      last_seen_.push_back(ids.back());
      connection.append({"XPENDING", key_, kGroup});
    }
    void answer(Connection& connection, const redisReply& reply) {
      // Only XPENDING answers with an array that starts with a number.
      if (reply.type != REDIS_REPLY_ARRAY || reply.elements < 2 || reply.element[0]->type != REDIS_REPLY_INTEGER)
        return;
      const redisReply& oldest = *reply.element[1];
      const std::string& last = last_seen_.front();  // as of when the command was sent, not as of now
      connection.append({"XTRIM", key_, "MINID", oldest.type == REDIS_REPLY_STRING ? redis::text(oldest) : last});
      last_seen_.pop_front();
    }

   private:
    std::string key_;
    std::deque<std::string> last_seen_;  // the last acknowledged entry, for each XPENDING in flight
  };
};

const QueueRegistration registered("redis_stream",
                                   entry_of<StreamDialect>("Redis streams: XADD, consumer group, XACK, trimming"));

}  // namespace
}  // namespace feedrate::redis_queue
