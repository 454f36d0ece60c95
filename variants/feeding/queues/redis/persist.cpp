#include <chrono>
#include <thread>

#include "common/error.hpp"
#include "variants/feeding/queues/redis/queue.hpp"

namespace feedrate::redis_queue {
namespace {

constexpr std::chrono::seconds kLongestRewrite{30};

std::string setting(redis::Connection& connection, const char* name) {
  const auto reply = connection.command({"CONFIG", "GET", name});
  return reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 ? std::string(redis::text(*reply->element[1])) : "";
}

}  // namespace

bool persist(redis::Connection& connection, bool shared, const std::string& aof) {
  if (shared) {
    if (aof != "no") {
      throw Failure(
          fmt::format("--aof {}: only a private server can be set; the persistence of this one is its own", aof));
    }
    try {
      return setting(connection, "appendonly") == "yes" && setting(connection, "appendfsync") == "always";
    } catch (const Failure&) {  // a managed server may forbid CONFIG
      return false;
    }
  }
  const char* const wanted = aof == "no" ? "no" : "yes";
  if (aof != "no" && setting(connection, "appendfsync") != aof)
    connection.command({"CONFIG", "SET", "appendfsync", aof});
  if (setting(connection, "appendonly") != wanted) connection.command({"CONFIG", "SET", "appendonly", wanted});
  // The server writes the file's first part in a child process; until then nothing is appended.
  const auto rewriting = [&] {
    const auto info = connection.command({"INFO", "persistence"});
    const std::string_view said = redis::text(*info);
    return said.find("aof_rewrite_in_progress:1") != said.npos || said.find("aof_rewrite_scheduled:1") != said.npos;
  };
  const auto deadline = std::chrono::steady_clock::now() + kLongestRewrite;
  while (aof != "no" && rewriting()) {
    if (std::chrono::steady_clock::now() > deadline) {
      throw Failure(fmt::format("--aof {}: the server has not begun its append-only file after {} s", aof,
                                kLongestRewrite.count()));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return aof == "always";
}

}  // namespace feedrate::redis_queue
