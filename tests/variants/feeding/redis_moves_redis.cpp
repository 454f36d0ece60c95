// Taking tasks with LMOVE: a worker gets all available tasks in one transaction, and none without a lease.
#include <gtest/gtest.h>

#include "common/redis/private_server.hpp"
#include "variants/feeding/queues/redis/moves.hpp"

namespace feedrate::test {
namespace {

using Words = std::vector<std::string>;

class Moves : public testing::Test {
 protected:
  void SetUp() override { connection_.command({"RPUSH", "q:tasks", "d", "c", "b", "a"}); }
  Words list(std::string_view key) {
    Words all;
    const redis::Reply reply = connection_.command({"LRANGE", key, "0", "-1"});
    for (std::size_t i = 0; i < reply->elements; ++i) all.emplace_back(redis::text(*reply->element[i]));
    return all;
  }
  /// Takes elements and returns the reply to EXEC.
  redis::Reply take(std::size_t elements) {
    RedisSettings settings;
    settings.prefix = "q";
    const redis_queue::Moves moves(connection_, {settings, "w"});
    redis::Reply last;
    for (unsigned n = moves.append(connection_, elements); n != 0; --n) last = connection_.read();
    return last;
  }
  redis::PrivateServer server_;
  redis::Connection connection_{server_.url()};
};

TEST_F(Moves, TakeTheOldestInOrder) {
  connection_.command({"ZADD", "q:leases", "1", "w"});
  const redis::Reply taken = take(3);
  ASSERT_EQ(taken->elements, 4u);
  EXPECT_EQ(redis::text(*taken->element[0]), "a");
  EXPECT_EQ(redis::text(*taken->element[2]), "c");
  EXPECT_EQ(taken->element[3]->integer, 1);
  EXPECT_EQ(list("q:processing:w"), (Words{"a", "b", "c"}));
  EXPECT_EQ(list("q:tasks"), (Words{"d"}));
}

TEST_F(Moves, ReturnNilForMissingElements) {
  connection_.command({"ZADD", "q:leases", "1", "w"});
  const redis::Reply taken = take(6);
  ASSERT_EQ(taken->elements, 7u);
  EXPECT_EQ(redis::text(*taken->element[3]), "d");
  EXPECT_EQ(taken->element[4]->type, REDIS_REPLY_NIL);
}

TEST_F(Moves, TakeNothingWithoutALease) {
  const redis::Reply taken = take(3);
  EXPECT_EQ(taken->element[3]->integer, 0);
  EXPECT_EQ(list("q:tasks"), (Words{"d", "c", "b", "a"}));
  EXPECT_EQ(list("q:processing:w"), Words{});
}

}  // namespace
}  // namespace feedrate::test
