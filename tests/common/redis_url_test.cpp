#include "common/redis/url.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "common/error.hpp"
#include "experiments/harness/json.hpp"

namespace feedrate::redis {
namespace {

/// python/tests/test_redis_urls.py parses the same list with redis-py.
TEST(RedisUrl, IsParsedAsInRedisPy) {
  const Json urls = Json::parse(std::ifstream(FEEDRATE_SOURCE_DIR "/python/tests/redis_urls.json"));
  ASSERT_GT(urls.size(), 10u);
  for (const Json& one : urls) {
    const Endpoint endpoint = parse_url(one.at("url"));
    EXPECT_EQ(endpoint.user, one.value("username", "")) << one;
    EXPECT_EQ(endpoint.password, one.value("password", "")) << one;
    EXPECT_EQ(endpoint.host, one.value("host", "")) << one;
    EXPECT_EQ(endpoint.path, one.value("path", "")) << one;
    EXPECT_EQ(endpoint.port, one.value("port", 6379)) << one;
    EXPECT_EQ(endpoint.database, one.value("db", 0)) << one;
  }
}

TEST(RedisUrl, InvalidUrlIsRejectedWithoutRevealingSecrets) {
  for (const char* wrong : {"",
                            "localhost",
                            "http://x",
                            "redis://",
                            "redis://h:99999",
                            "redis://h:x",
                            "unix://relative",
                            "redis://:s3cret@",
                            "redis://s3cret/w%rd@127.0.0.1:7799",
                            "redis://:s3cret/w@[::1]:7799",
                            "unix://:p@s3cret/w@/x",
                            "redis://h/one",
                            "redis://:s3cret#1@h",
                            "redis://:s3cret?1@h",
                            "redis://h?Password=s3cret",
                            "redis://h#password=s3cret",
                            "s3cret@h",
                            "redis://[::1",
                            "redis://[::1]7799",
                            "redis://::1:7799",
                            "redis://h?db=x&password=s3cret",
                            "redis://:s3cret@h?colour=red",
                            "rediss://:s3cret@h",
                            "redis://u:s3cret@h:1:2"}) {
    try {
      parse_url(wrong);
      FAIL() << wrong;
    } catch (const BadInput& error) {
      EXPECT_NE(std::string(error.what()).find("--redis"), std::string::npos) << error.what();
      EXPECT_EQ(std::string(error.what()).find("s3cret"), std::string::npos) << error.what();
    }
  }
}

TEST(RedisUrl, UserAndPasswordAreHidden) {
  for (const auto& [url, shown] :
       std::vector<std::pair<std::string, std::string>>{{"redis://u:secret@h:1", "redis://***@h:1"},
                                                        {"redis://secret@h:1", "redis://***@h:1"},
                                                        {"redis://:a/b@h:1/2", "redis://***@h:1/2"},
                                                        {"redis://h:1?db=1&password=x", "redis://h:1?***"},
                                                        {"redis://h:1/0?password=a@secret", "redis://***?***"},
                                                        {"redis://u:p@h?password=a@secret", "redis://***@h?***"},
                                                        {"redis://h?pass%77ord=secret", "redis://h?***"},
                                                        {"redis://h#password=secret", "redis://h#***"},
                                                        {"redis://:secret?x@h", "redis://***?***"},
                                                        {"--redis=redis://u:secret@h", "--redis=redis://***@h"},
                                                        {"unix://:secret@/x@y/s", "unix://***@y/s"},
                                                        {"redis://h:1", "redis://h:1"},
                                                        {"redis://h:1?db=1", "redis://h:1?db=1"},
                                                        {"unix:///x@y/s", "unix:///x@y/s"},
                                                        {"unix:///a", "unix:///a"},
                                                        {"trace@home.csv", "trace@home.csv"}}) {
    EXPECT_EQ(without_password(url), shown);
    std::string hidden = url;
    hide_password(hidden.data());
    EXPECT_EQ(hidden.size(), url.size());
    EXPECT_EQ(hidden == url, url == shown) << hidden;
    EXPECT_EQ(hidden.find("secret"), std::string::npos) << hidden;
  }
}

TEST(RedisUrl, Ipv6ClusterServerKeepsItsBrackets) {
  EXPECT_EQ(with_server("redis://u:p@[::1]:1/2", "", 7), "redis://u:p@[::1]:7/2");
  EXPECT_EQ(with_server("redis://a:1", "fe80::2", 7), "redis://[fe80::2]:7");
  EXPECT_EQ(servers_of("redis://:p@[::1]:1,b/2?db=1"),
            (std::vector<std::string>{"redis://:p@[::1]:1/2?db=1", "redis://:p@b/2?db=1"}));
}

}  // namespace
}  // namespace feedrate::redis
