#include <algorithm>

#include "variants/feeding/queues/redis/moves.hpp"

namespace feedrate::redis_queue {
namespace {

constexpr std::string_view kPopElements = "local elements = redis.call('RPOP', KEYS[1], ARGV[1]) or {}";

/// Tasks and results are elements of Redis lists. A worker moves a batch of tasks into its own list in one step and
/// trims the list once the server has the results: delivery is at least once. A dead worker is detected by its expired
/// lease, and another worker takes over its list (Redelivery).
struct ReliableDialect : ListDialect {
  static constexpr bool kKeeps = true;
  static std::vector<Axis> axes() { return processing_axes(); }

  class Tasks {
   public:
    Tasks(Connection& connection, const RedisConfig& config, const Redelivery& redelivery)
        : take_(connection, config, redelivery, kPopElements),
          moves_(connection, take_.keys()),
          redelivery_(redelivery) {}

    unsigned request(Connection& connection, std::size_t elements) {
      if (!redelivery_.alive()) return 0;  // this worker may be presumed dead by now
      asked_ = elements;
      moving_ = !drained_ && large_;
      if (moving_) {
        asked_ = std::min({elements, Moves::kMax, 2 * std::max<std::size_t>(came_, 1)});
        return moves_.append(connection, asked_);
      }
      if (drained_) {
        connection.append({"BLMOVE", take_.keys().tasks, take_.keys().processing, "RIGHT", "RIGHT",
                           fmt::format("{}", kBlockMs / 1000.0)});
      } else {
        take_.append(connection, elements);
      }
      return 1;
    }
    void parse(const redisReply& reply, std::vector<Element>& elements) {
      if (reply.type == REDIS_REPLY_STRING) {  // the reply to BLMOVE
        elements.push_back({redis::text(reply), "1"});
      } else if (reply.type == REDIS_REPLY_ARRAY) {
        add(reply, elements);
      }
      came_ = elements.size();
      drained_ = reply.type != REDIS_REPLY_STRING && came_ < asked_;
      std::size_t bytes = 0;
      for (const Element& each : elements) bytes += each.bytes.size();
      if (came_ != 0) large_ = bytes / came_ >= Moves::kLeastBytes;
    }

   private:
    void add(const redisReply& reply, std::vector<Element>& elements) const {
      const std::size_t all = moving_ ? reply.elements - 1 : reply.elements;
      for (std::size_t i = 0; i < reply.elements; ++i) {
        if (reply.element[i]->type == REDIS_REPLY_ERROR) {
          throw redis::ServerFailure(fmt::format("Redis: {}", redis::text(*reply.element[i])),
                                     redis::text(*reply.element[i]));
        }
      }
      if (moving_ && reply.element[all]->integer == 0) return;  // the lease was lost; all tasks are back in the queue
      for (std::size_t i = 0; i < all && reply.element[i]->type == REDIS_REPLY_STRING; ++i) {
        elements.push_back({redis::text(*reply.element[i]), "1"});
      }
    }

    Take take_;
    Moves moves_;
    const Redelivery& redelivery_;
    std::size_t asked_ = 0, came_ = 0;
    bool drained_ = false, large_ = false, moving_ = false;
  };

  using Acks = ProcessingAcks;
};

const QueueRegistration registered("redis_reliable",
                                   entry_of<ReliableDialect>("Redis lists: a batch moves into its worker's own list in "
                                                             "one step and leaves it when its results are stored"));

}  // namespace
}  // namespace feedrate::redis_queue
