#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace feedrate::redis {

/// The slot of a key in a Redis Cluster: CRC-16/XMODEM of its hash tag, or of all of it where it has none, modulo 16384
/// (Redis Cluster specification, "Key distribution model").
unsigned slot_of(std::string_view key);

/// What stands between the first { and the next }; empty where the key has no hash tag.
std::string_view hash_tag(std::string_view key);

/// Which server has which slot just now, as one of them says. A server that is no cluster's has all of them.
class Cluster {
 public:
  /// Asks the servers of the URL in turn, until one answers that sees the whole cluster. Throws ServerFailure where
  /// none does, BadInput naming `--redis` where several servers are named that are no cluster's.
  explicit Cluster(const std::string& url);

  /// The URL of the server that has the keys of this prefix. Throws BadInput naming `--prefix` where the prefix has no
  /// hash tag in a cluster (the keys of a queue must lie in one slot), ServerFailure where no server has the slot.
  std::string server_of(const std::string& prefix) const;

 private:
  struct Range {
    long long first, last;
    std::string server;
  };
  bool ask(const std::string& server);

  std::string url_;
  std::vector<Range> ranges_;  // none: no cluster
};

}  // namespace feedrate::redis
