// A connection that the server closed while nothing was asked is made anew, whenever that is found.
#include "common/redis/connection.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "common/redis/private_server.hpp"

namespace feedrate::test {
namespace {

using namespace std::chrono_literals;

class RedisConnection : public testing::Test {
 protected:
  void close_it() { other_.command({"CLIENT", "KILL", "ID", id_}); }
  redis::PrivateServer server_;
  redis::Connection connection_{server_.url()}, other_{server_.url()};
  std::string id_ = std::to_string(connection_.command({"CLIENT", "ID"})->integer);
};

TEST_F(RedisConnection, IsMadeAnewBehindAnAnswerThatLayInTheSocket) {
  connection_.append({"BRPOP", "nothing", "0.01"});
  connection_.flush();
  std::this_thread::sleep_for(100ms);  // the answer is there, and nobody has read it
  close_it();
  EXPECT_EQ(connection_.read()->type, REDIS_REPLY_NIL);
  EXPECT_EQ(redis::text(*connection_.command({"PING"})), "PONG");
  EXPECT_EQ(connection_.times_made(), 2u);
}

TEST_F(RedisConnection, IsMadeAnewWhereNothingOfACommandWasSent) {
  connection_.append({"ECHO", "text"});  // not sent yet
  close_it();
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(redis::text(*connection_.read()), "text");
}

TEST_F(RedisConnection, ThatOwesAnAnswerIsAnError) {
  connection_.append({"BRPOP", "nothing", "0"});
  connection_.flush();
  std::this_thread::sleep_for(20ms);
  close_it();
  EXPECT_THROW(connection_.read(), redis::ServerFailure);
}

}  // namespace
}  // namespace feedrate::test
