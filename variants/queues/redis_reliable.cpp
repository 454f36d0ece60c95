#include "variants/queues/redis/processing.hpp"

namespace feedrate::redis_queue {
namespace {

constexpr std::string_view kPop = "local elements = redis.call('RPOP', KEYS[1], ARGV[1]) or {}";

/// Tasks and results as elements of Redis lists. A worker moves a batch of tasks into a list of its own by one script,
/// and cuts them off there when the server has their results: at least once. A worker that died is found by its lease,
/// and another takes over its list (Redelivery).
struct ReliableDialect : ListDialect {
  static constexpr bool kKeeps = true;
  static std::vector<Axis> axes() { return processing_axes(); }

  class Tasks {
   public:
    Tasks(Connection& connection, const QueueConfig& config, const Redelivery& redelivery)
        : take_(connection, config, redelivery, kPop), redelivery_(redelivery) {}

    unsigned request(Connection& connection, std::size_t elements) {
      if (!redelivery_.alive()) return 0;  // it might be taken for dead by now
      asked_ = elements;
      if (drained_) {
        connection.append(
            {"BLMOVE", take_.tasks(), take_.processing(), "RIGHT", "RIGHT", fmt::format("{}", kBlockMs / 1000.0)});
      } else {
        take_.append(connection, elements);
      }
      return 1;
    }
    void parse(const redisReply& reply, std::vector<Element>& elements) {
      if (reply.type == REDIS_REPLY_STRING) {  // of BLMOVE
        elements.push_back({redis::text(reply), "1"});
        drained_ = false;
      } else if (reply.type == REDIS_REPLY_ARRAY) {
        for (std::size_t i = 0; i < reply.elements; ++i) elements.push_back({redis::text(*reply.element[i]), "1"});
        drained_ = reply.elements < asked_;
      } else {
        drained_ = true;
      }
    }

   private:
    Take take_;
    const Redelivery& redelivery_;
    std::size_t asked_ = 0;
    bool drained_ = false;
  };

  using Acks = ProcessingAcks;
};

const QueueRegistration registered("redis_reliable",
                                   entry_of<ReliableDialect>("Redis lists: a batch moves into its worker's own list by "
                                                             "a script, and leaves it when its results are stored"));

}  // namespace
}  // namespace feedrate::redis_queue
