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
    connection.begin_command(3 + keys.size() + arguments.size());
    connection.add_word("EVALSHA");
    connection.add_word(sha_);
    connection.add_word(std::to_string(keys.size()));
    for (const auto key : keys) connection.add_word(key);
    for (const auto argument : arguments) connection.add_word(argument);
  }

 private:
  std::string sha_;
};

}  // namespace feedrate::redis
