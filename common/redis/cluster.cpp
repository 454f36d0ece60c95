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

/// Returns the reply to CLUSTER INFO; null if the server is not part of a cluster, or if the user may not run the
/// command.
Reply info_of(Connection& connection) {
  try {
    return connection.command({"CLUSTER", "INFO"});
  } catch (const ServerFailure& failure) {
    if (failure.code == "ERR" || failure.code == "NOPERM") return nullptr;
    throw;
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

Cluster::Cluster(const std::string& url) : url_(url) {
  if (!url.starts_with("redis://")) return;  // clusters are reached by TCP only
  const std::vector<std::string> servers = servers_of(url);
  for (const std::string& server : servers) parse_url(server);  // rejects an invalid URL at once
  std::string reasons;
  for (const std::string& server : servers) {
    try {
      if (ask(server)) return;
      reasons += fmt::format("{}: it reports that the cluster is down; ", without_password(server));
    } catch (const ServerFailure& failure) {
      if (servers.size() == 1) throw;
      reasons += fmt::format("{}; ", failure.what());
    }
  }
  throw ServerFailure(reasons.substr(0, reasons.size() - 2));
}

bool Cluster::ask(const std::string& server) {
  Connection connection(server);
  const Reply info = info_of(connection);
  if (!info) {
    if (server == url_) return true;
    throw BadInput("--redis", without_password(url_), "a single server, or several servers of one Redis Cluster");
  }
  if (text(*info).find("cluster_state:ok") == std::string_view::npos) return false;
  const Reply id = connection.command({"CLUSTER", "MYID"}), slots = connection.command({"CLUSTER", "SLOTS"});
  for (std::size_t i = 0; i < slots->elements; ++i) {
    const redisReply& range = *slots->element[i];
    const redisReply& master = *range.element[2];
    // The server that replied keeps the address from the URL: behind a proxy it may report a different one.
    const bool own = master.elements > 2 && text(*master.element[2]) == text(*id);
    ranges_.push_back({range.element[0]->integer, range.element[1]->integer,
                       own ? server
                           : with_server(server, std::string(text(*master.element[0])),
                                         static_cast<int>(master.element[1]->integer))});
  }
  return true;
}

std::string Cluster::server_of(const std::string& prefix) const {
  if (ranges_.empty()) return url_;
  if (hash_tag(prefix).empty()) {
    throw BadInput("--prefix", prefix, "for a Redis Cluster, a prefix with a hash tag, such as {feedrate}");
  }
  const long long slot = slot_of(prefix);
  for (const Range& range : ranges_) {
    if (slot >= range.first && slot <= range.last) return range.server;
  }
  throw ServerFailure(fmt::format("Redis {}: no server of the cluster has slot {}", without_password(url_), slot));
}

}  // namespace feedrate::redis
