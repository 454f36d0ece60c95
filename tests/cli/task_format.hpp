#pragma once
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "tests/cli/feedrate_process.hpp"

/// The documented message format (common/redis/README.md), implemented independently of the code under test.
namespace feedrate::cli_test {

/// A message or result on the wire: u64 id, u32 length, u32 checksum, little-endian; then the payload.
struct Message {
  std::uint64_t id = 0;
  std::uint32_t length = 0, checksum = 0;
  std::vector<std::uint32_t> words;
};
inline constexpr std::uint32_t kFailed = 0x8000'0000, kTooLong = 2, kAgain = 4, kExpired = 5, kWorkerDied = 6;
constexpr std::uint64_t id_of(std::uint64_t list, std::uint64_t number) { return list << 48 | number; }

inline std::string encode(std::uint64_t id, const std::vector<std::uint32_t>& words) {
  std::string bytes(16 + 4 * words.size(), '\0');
  const std::uint32_t length = static_cast<std::uint32_t>(4 * words.size());
  std::memcpy(bytes.data(), &id, 8);
  std::memcpy(bytes.data() + 8, &length, 4);
  std::memcpy(bytes.data() + 16, words.data(), length);
  return bytes;
}
inline std::string padded(std::string bytes) {
  bytes.resize((bytes.size() + 15) / 16 * 16);
  return bytes;
}
inline Message decode(const std::string& bytes) {
  Message message;
  if (bytes.size() < 16) return message;
  std::memcpy(&message.id, bytes.data(), 8);
  std::memcpy(&message.length, bytes.data() + 8, 4);
  std::memcpy(&message.checksum, bytes.data() + 12, 4);
  if ((message.length & kFailed) != 0 || 16 + message.length > bytes.size()) return message;
  message.words.resize(message.length / 4);
  std::memcpy(message.words.data(), bytes.data() + 16, 4 * message.words.size());
  return message;
}

/// Sends a task as documented for clients.
inline Reply add_task(RedisServer& server, const std::string& queue, const std::string& element) {
  if (queue == "redis_stream") return server.command({"XADD", "t:tasks", "*", "m", element});
  if (queue == "redis_priority") return server.command({"ZADD", "t:tasks", "1", element});
  Reply reply = server.command({"LPUSH", "t:tasks", element});
  if (queue == "redis_pubsub") server.command({"PUBLISH", "t:tasks:wake", "1"});
  return reply;
}
/// Elements of a reply list, oldest first.
inline std::vector<std::string> result_elements(RedisServer& server, const std::string& queue, unsigned list = 0) {
  const std::string key = "t:results:" + std::to_string(list);
  const bool stream = queue == "redis_stream";
  const Reply reply = stream ? server.command({"XRANGE", key, "-", "+"}) : server.command({"LRANGE", key, "0", "-1"});
  std::vector<std::string> elements;
  for (std::size_t i = 0; reply && reply->type == REDIS_REPLY_ARRAY && i < reply->elements; ++i) {
    const redisReply& element = stream ? *reply->element[i]->element[1]->element[1] : *reply->element[i];
    elements.emplace_back(element.str, element.len);
  }
  if (!stream) std::reverse(elements.begin(), elements.end());
  return elements;
}
/// Starts a worker and waits until it is ready.
inline std::unique_ptr<Process> start_worker(Workplace& place, Words words, const Words& more = {}) {
  words.insert(words.begin(), "worker");
  words.insert(words.end(), more.begin(), more.end());
  auto process = place.start(words);
  EXPECT_TRUE(await([&] { return process->err().find("worker ") != std::string::npos; })) << process->err();
  return process;
}
inline bool at_least_once(const std::string& queue) { return queue != "redis_list" && queue != "redis_pubsub"; }

}  // namespace feedrate::cli_test
