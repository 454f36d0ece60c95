#pragma once
#include <string>

namespace feedrate {

/// Which Redis to use. With no URL a private server is started and stopped.
struct RedisSettings {
  std::string url;  ///< redis://[user[:password]@]host[:port][/db], unix://[user:password@]/path, or empty
  std::string prefix = "feedrate";  ///< of the keys that workers in other processes serve
  std::string own_prefix = {};      ///< of the keys of this run: `prefix` and a hash tag with the run's id
  bool shared = false;              ///< others use the server, too: what this run makes there must expire
};

}  // namespace feedrate
