#include <chrono>

#include "variants/feeding/queues/redis/processing.hpp"

namespace feedrate::redis_queue {
namespace {

constexpr std::string_view kPopByScore = R"lua(
local found, elements = redis.call('ZPOPMIN', KEYS[1], ARGV[1]), {}
for i = 1, #found, 2 do elements[#elements + 1] = found[i] end)lua";

struct PriorityOptions {
  unsigned priorities = 1;
  double overtaking_s = 1;
};
const Axes<PriorityOptions>& priority_axes() {
  static const auto kAxes =
      Axes<PriorityOptions>()
          .number("priorities", &PriorityOptions::priorities, {1, 256},
                  "number of priorities, which messages take in turn")
          .number("overtaking", &PriorityOptions::overtaking_s, {0, 86400, 1, "overtaking_seconds"},
                  "seconds by which each step of priority moves a message ahead");
  return kAxes;
}

/// Tasks are in a sorted set, results in lists. The score is the time of sending in microseconds, minus `overtaking`
/// for each step of priority. So a message overtakes less important messages sent up to `overtaking` before it for each
/// step, but no older ones: with n priorities no message waits more than (n - 1) x `overtaking` longer than in a plain
/// queue. The rest is as in redis_reliable. Redis has no blocking pop that keeps the element it takes, so idle workers
/// poll, at increasing intervals.
struct PriorityDialect : ListDialect {
  static constexpr auto kAddCeiling = "redis_sorted_set_add_per_second",
                        kTakeCeiling = "redis_sorted_set_pop_per_second";
  static constexpr bool kKeeps = true;
  static constexpr auto kKind = "zset";
  static constexpr auto kWithdraw = R"lua(
    local removed = 0
    for _, element in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
      if is_of_first(ARGV[1], element) then
        removed = removed + redis.call('ZREM', KEYS[1], element)
      end
    end
    return removed)lua";
  static std::vector<Axis> axes() {
    std::vector<Axis> axes = processing_axes();
    for (const Axis& axis : priority_axes().list()) axes.push_back(axis);
    return axes;
  }

  class Push {
   public:
    explicit Push(const RedisConfig& config) : options_(priority_axes().of(config.point.own)) {}
    void operator()(Connection& connection, std::string_view key, const ConstMessages& messages, std::size_t pack) {
      using namespace std::chrono;
      const auto now =
          static_cast<std::uint64_t>(duration_cast<microseconds>(system_clock::now().time_since_epoch()).count());
      last_us_ = std::max(now, last_us_ + 1);
      connection.begin_command(2 + 2 * ((messages.count + pack - 1) / pack));
      connection.add_word("ZADD");
      connection.add_word(key);
      for_each_element(messages, pack, [&](std::string_view element) {
        Header header;
        std::memcpy(&header, element.data(), sizeof header);
        // Elements of one producer keep their order: each gets a different microsecond.
        const double priority = static_cast<double>(sequence_of(header.id) / pack % options_.priorities);
        connection.add_word(
            fmt::format("{:.0f}", static_cast<double>(last_us_++) - priority * options_.overtaking_s * 1e6));
        connection.add_word(element);
      });
    }

   private:
    PriorityOptions options_;
    std::uint64_t last_us_ = 0;
  };
  static void ask_length(Connection& connection, std::string_view key) { connection.append({"ZCARD", key}); }

  class Tasks {
   public:
    Tasks(Connection& connection, const RedisConfig& config, const Redelivery& redelivery)
        : take_(connection, config, redelivery, kPopByScore), redelivery_(redelivery) {}
    unsigned request(Connection& connection, std::size_t elements) {
      if (!redelivery_.alive() || now_ns() < again_at_ns_) return 0;
      take_.append(connection, elements);
      return 1;
    }
    void parse(const redisReply& reply, std::vector<Element>& elements) {
      if (reply.type != REDIS_REPLY_ARRAY) {
        again_at_ns_ = now_ns() + pause_ns_;
        pause_ns_ = std::min(kLongestPauseNs, pause_ns_ + pause_ns_ / 4);
        return;
      }
      pause_ns_ = kFirstPauseNs;
      for (std::size_t i = 0; i < reply.elements; ++i) elements.push_back({redis::text(*reply.element[i]), "1"});
    }

   private:
    static constexpr std::uint64_t kFirstPauseNs = 5'000, kLongestPauseNs = 1'000'000;
    Take take_;
    const Redelivery& redelivery_;
    std::uint64_t again_at_ns_ = 0, pause_ns_ = kFirstPauseNs;
  };
  using Acks = ProcessingAcks;
};

QueueEntry entry() {
  QueueEntry made = entry_of<PriorityDialect>(
      "Redis sorted set by priority and age; a script moves each batch into its worker's own list");
  made.guarantee.order = "by priority; equal priorities in order per producer with one worker";
  return made;
}

const QueueRegistration registered("redis_priority", entry());

}  // namespace
}  // namespace feedrate::redis_queue
