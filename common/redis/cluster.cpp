#include "common/redis/cluster.hpp"

#include <fmt/format.h>

#include <cstdint>

#include "common/redis/connection.hpp"

namespace feedrate::redis {
namespace {

constexpr unsigned kSlots = 16384;

std::uint16_t crc16(std::string_view bytes) {
  std::uint16_t crc = 0;
  for (const unsigned char byte : bytes) {
    crc = static_cast<std::uint16_t>(crc ^ byte << 8);
    for (int bit = 0; bit < 8; ++bit) {
      crc = static_cast<std::uint16_t>((crc & 0x8000) != 0 ? crc << 1 ^ 0x1021 : crc << 1);
    }
  }
  return crc;
}

/// The answer to CLUSTER SLOTS; null where the server is no cluster's, or does not say.
Reply slots_of(Connection& connection) {
  try {
    Reply reply = connection.command({"CLUSTER", "SLOTS"});
    return reply->type == REDIS_REPLY_ARRAY ? std::move(reply) : nullptr;
  } catch (const ServerFailure& failure) {
    if (failure.code.empty()) throw;
    return nullptr;
  }
}

}  // namespace

std::string_view hash_tag(std::string_view key) {
  const auto open = key.find('{');
  if (open == key.npos) return {};
  const auto close = key.find('}', open);
  return close == key.npos ? std::string_view{} : key.substr(open + 1, close - open - 1);
}

unsigned slot_of(std::string_view key) {
  const std::string_view tag = hash_tag(key);
  return crc16(tag.empty() ? key : tag) % kSlots;
}

std::string node_of(const std::string& url, std::string_view key) {
  if (!url.starts_with("redis://")) return url;  // servers of a cluster know each other by TCP
  for (const std::string& server : servers_of(url)) {
    try {
      Connection connection(server);
      const Reply ranges = slots_of(connection);
      if (!ranges) return url;
      if (hash_tag(key).empty()) {
        throw BadInput("--prefix", std::string(key), "in a Redis Cluster one with a hash tag, such as {feedrate}");
      }
      const long long slot = slot_of(key);
      for (std::size_t i = 0; i < ranges->elements; ++i) {
        const redisReply& range = *ranges->element[i];
        if (slot < range.element[0]->integer || slot > range.element[1]->integer) continue;
        const redisReply& master = *range.element[2];
        return with_server(server, std::string(text(*master.element[0])), static_cast<int>(master.element[1]->integer));
      }
      throw ServerFailure(fmt::format("Redis {}: no server of the cluster has slot {}", without_password(url), slot));
    } catch (const ServerFailure& failure) {
      if (server == servers_of(url).back()) throw;
    }
  }
  return url;
}

}  // namespace feedrate::redis
