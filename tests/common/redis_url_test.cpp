#include <gtest/gtest.h>

#include "common/error.hpp"
#include "common/redis/connection.hpp"

namespace feedrate::redis {
namespace {

TEST(RedisUrl, HostPortDatabaseAndLogin) {
  const auto plain = parse_url("redis://example");
  EXPECT_EQ(plain.host, "example");
  EXPECT_EQ(plain.port, 6379);
  const auto full = parse_url("redis://me:p@ss@10.0.0.1:7000/3");
  EXPECT_EQ(full.user, "me");
  EXPECT_EQ(full.password, "p@ss");
  EXPECT_EQ(full.host, "10.0.0.1");
  EXPECT_EQ(full.port, 7000);
  EXPECT_EQ(full.database, 3);
  const auto socket = parse_url("unix://:secret@/run/redis.sock");
  EXPECT_EQ(socket.path, "/run/redis.sock");
  EXPECT_EQ(socket.password, "secret");
}

TEST(RedisUrl, WhatIsNoUrlIsRefused) {
  for (const char* wrong :
       {"", "localhost", "http://x", "redis://", "redis://h:99999", "redis://h:x", "unix://relative"}) {
    EXPECT_THROW(parse_url(wrong), BadInput) << wrong;
  }
}

TEST(RedisUrl, PasswordsAreHiddenInMessages) {
  EXPECT_EQ(without_password("redis://u:secret@h:1"), "redis://u:***@h:1");
  EXPECT_EQ(without_password("redis://h:1"), "redis://h:1");
  EXPECT_EQ(without_password("unix:///a"), "unix:///a");
}

}  // namespace
}  // namespace feedrate::redis
