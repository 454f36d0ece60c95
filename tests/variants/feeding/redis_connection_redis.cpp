// A connection that the server closed while no request was pending is reestablished, no matter when the close is
// detected.
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
  /// Waits until the server has read the BRPOP and blocks the client (`blocked`), or no longer blocks it.
  void await_pop(bool blocked) {
    const auto deadline = std::chrono::steady_clock::now() + 2min;
    while (std::chrono::steady_clock::now() < deadline) {
      const redis::Reply list = other_.command({"CLIENT", "LIST", "ID", id_});
      const std::string_view about = redis::text(*list);
      if (about.find("cmd=brpop") != about.npos && (about.find(" flags=b") != about.npos) == blocked) return;
      std::this_thread::sleep_for(1ms);
    }
    FAIL() << "the server has not read the BRPOP";
  }
  redis::PrivateServer server_;
  redis::Connection connection_{server_.url()}, other_{server_.url()};
  std::string id_ = std::to_string(connection_.command({"CLIENT", "ID"})->integer);
};

TEST_F(RedisConnection, IsReestablishedAfterABufferedReplyIsRead) {
  connection_.append({"BRPOP", "nothing", "0.01"});
  connection_.flush();
  await_pop(false);  // the reply has arrived, but is unread
  close_it();
  EXPECT_EQ(connection_.read()->type, REDIS_REPLY_NIL);
  EXPECT_EQ(redis::text(*connection_.command({"PING"})), "PONG");
  EXPECT_EQ(connection_.times_made(), 2u);
}

TEST_F(RedisConnection, IsReestablishedIfNoPartOfACommandWasSent) {
  connection_.append({"ECHO", "text"});  // not sent yet
  close_it();
  EXPECT_EQ(redis::text(*connection_.read()), "text");
}

TEST_F(RedisConnection, ClosedWithAnOutstandingReplyIsAnError) {
  connection_.append({"BRPOP", "nothing", "0"});
  connection_.flush();
  await_pop(true);
  close_it();
  EXPECT_THROW(connection_.read(), redis::ServerFailure);
}

}  // namespace
}  // namespace feedrate::test
