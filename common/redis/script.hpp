#pragma once
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/redis/connection.hpp"

namespace feedrate::redis {

/// Formats a time for commands and scripts.
inline std::string milliseconds(double seconds) {
  return std::to_string(static_cast<std::uint64_t>(std::llround(seconds * 1000)));
}

/// A Lua script on the server of one connection. The server runs it atomically.
class Script {
 public:
  /// Loads the script. Throws Failure with the server's message if it does not compile.
  Script(Connection& connection, std::string_view source)
      : sha_(text(*connection.command({"SCRIPT", "LOAD", source}))) {}

  /// Appends a call of the script.
  void append(Connection& connection, const std::vector<std::string_view>& keys,
              const std::vector<std::string_view>& arguments) const {
    const std::string count = std::to_string(keys.size());
    connection.append(words(count, keys, arguments));
  }
  /// Appends a call whose reply the server suppresses, even if it is an error.
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
