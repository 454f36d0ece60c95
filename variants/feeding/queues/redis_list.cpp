#include "variants/feeding/queues/redis/list.hpp"

namespace feedrate::redis_queue {
namespace {

const QueueRegistration registered("redis_list",
                                   entry_of<ListDialect>("Redis lists: LPUSH, RPOP with a count, BRPOP when idle"));

}  // namespace
}  // namespace feedrate::redis_queue
