#pragma once
#include <string>

namespace feedrate {

/// Which Redis to use. With no URL a private server is started and stopped.
struct RedisSettings {
  std::string url;  ///< redis://[user[:password]@]host[:port][/db], unix://[user:password@]/path, or empty
  std::string prefix = "feedrate";  ///< of every key
};

}  // namespace feedrate
