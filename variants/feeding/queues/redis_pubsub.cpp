#include "common/redis/subscription.hpp"
#include "variants/feeding/queues/redis/list.hpp"

namespace feedrate::redis_queue {
namespace {

std::string channel_of(std::string_view key) { return fmt::format("{}:wake", key); }

/// Lists as in redis_list, but a reader that found nothing waits for a message on the channel `<key>:wake` instead of
/// in a blocking pop; every push publishes there. The variant shows the cost and benefit of notification compared with
/// BRPOP. A notification may be lost with its connection, so a reader also polls its list at intervals.
struct PubsubDialect : ListDialect {
  static void push_results(Connection& connection, std::string_view key, const ConstMessages& messages,
                           std::size_t pack) {
    ListDialect::push_results(connection, key, messages, pack);
    connection.append_unanswered({"PUBLISH", channel_of(key), "1"});
  }
  using Push = PushAsResults<PubsubDialect>;

  class Results {
   public:
    static constexpr auto kAddCeiling = ListDialect::kAddCeiling, kTakeCeiling = ListDialect::kTakeCeiling;
    Results(const RedisConfig& config, std::string key)
        : key_(std::move(key)), wake_(std::make_unique<redis::Subscription>(config.redis.url, channel_of(key_))) {}
    unsigned request(Connection& connection, std::size_t elements) {
      const std::uint64_t now = now_ns();
      if (drained_ && !wake_->came() && now - asked_at_ns_ < kPollNs) return 0;
      drained_ = false;
      asked_at_ns_ = now;
      connection.append({"RPOP", key_, std::to_string(elements)});
      return 1;
    }
    void parse(const redisReply& reply, std::vector<Element>& elements) {
      drained_ = reply.type != REDIS_REPLY_ARRAY;  // nil: the list is empty
      for (std::size_t i = 0; !drained_ && i < reply.elements; ++i) {
        elements.push_back({redis::text(*reply.element[i]), {}});
      }
    }

   private:
    static constexpr std::uint64_t kPollNs = kBlockMs * std::uint64_t{1'000'000};
    std::string key_;
    std::unique_ptr<redis::Subscription> wake_;
    std::uint64_t asked_at_ns_ = 0;
    bool drained_ = false;
  };
  using Tasks = TasksAsResults<Results>;
};

const QueueRegistration registered(
    "redis_pubsub", entry_of<PubsubDialect>("Redis lists; idle readers wait for a Pub/Sub message instead of "
                                            "in a blocking pop"));

}  // namespace
}  // namespace feedrate::redis_queue
