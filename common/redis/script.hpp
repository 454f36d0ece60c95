#pragma once
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/redis/connection.hpp"

namespace feedrate::redis {

/// A time as commands and scripts take it.
inline std::string milliseconds(double seconds) {
  return std::to_string(static_cast<std::uint64_t>(std::llround(seconds * 1000)));
}

/// A Lua script on the server of one connection. The server runs it as one step: no other command comes between.
class Script {
 public:
  /// Loads it. Throws Failure with the server's words where it does not compile.
  Script(Connection& connection, std::string_view source)
      : sha_(text(*connection.command({"SCRIPT", "LOAD", source}))) {}

  /// Adds a call of it.
  void append(Connection& connection, const std::vector<std::string_view>& keys,
              const std::vector<std::string_view>& arguments) const {
    const std::string count = std::to_string(keys.size());
    connection.append(words(count, keys, arguments));
  }
  /// The same where nobody waits for the reply: the server keeps it to itself, an error included.
  void append_unanswered(Connection& connection, const std::vector<std::string_view>& keys,
                         const std::vector<std::string_view>& arguments) const {
    const std::string count = std::to_string(keys.size());
    connection.append_unanswered(words(count, keys, arguments));
  }

 private:
  std::vector<std::string_view> words(std::string_view count, const std::vector<std::string_view>& keys,
                                      const std::vector<std::string_view>& arguments) const {
    std::vector<std::string_view> all{"EVALSHA", sha_, count};
    all.reserve(3 + keys.size() + arguments.size());
    all.insert(all.end(), keys.begin(), keys.end());
    all.insert(all.end(), arguments.begin(), arguments.end());
    return all;
  }
  std::string sha_;
};

}  // namespace feedrate::redis
