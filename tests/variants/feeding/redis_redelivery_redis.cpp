// A worker takes over the tasks of many dead workers without pauses, regardless of their number.
#include <gtest/gtest.h>

#include <chrono>

#include "common/redis/private_server.hpp"
#include "variants/feeding/queues/redis/redelivery.hpp"

namespace feedrate::test {
namespace {

using namespace std::chrono_literals;

TEST(Redelivery, TakesOverFromAllDeadWorkersWithoutPauses) {
  // Pauses of a quarter of a second, at two dead workers per heartbeat, would add four minutes.
  constexpr int kDead = 2000;
  const redis::PrivateServer server;
  redis::Connection connection(server.url());
  const std::string message(16, '\0');
  for (int i = 0; i < kDead; ++i) {
    const std::string dead = "dead:" + std::to_string(i);
    connection.append({"ZADD", "q:leases", "1", dead});
    connection.append({"RPUSH", "q:processing:" + dead, message});
  }
  while (connection.unanswered() != 0) connection.read();

  RedisSettings settings{.url = server.url(), .prefix = "q"};
  settings.delivery.lease_seconds = 3600;
  redis_queue::Redelivery worker(settings, "w", "w:1", true, "list", false);
  const auto suspects = [&] { return connection.command({"LLEN", "q:suspects"})->integer; };
  const auto deadline = std::chrono::steady_clock::now() + 2min;
  while (suspects() < kDead && std::chrono::steady_clock::now() < deadline) worker.progress();
  EXPECT_EQ(suspects(), kDead);
  EXPECT_EQ(connection.command({"ZCARD", "q:leases"})->integer, 1) << "only its own lease is left";
}

}  // namespace
}  // namespace feedrate::test
