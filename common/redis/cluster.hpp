#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace feedrate::redis {

/// The slot of a key in a Redis Cluster: CRC-16/XMODEM of its hash tag, or of the entire key if it has none, modulo
/// 16384 (Redis Cluster specification, "Key distribution model").
unsigned slot_of(std::string_view key);

/// The text between the first { and the next }; empty if the key has no hash tag.
std::string_view hash_tag(std::string_view key);

/// The current assignment of slots to servers, as reported by one of them. A server outside a cluster has all slots.
class Cluster {
 public:
  /// Queries the URL's servers in turn, until one that sees the complete cluster replies. Throws ServerFailure if none
  /// does, and BadInput naming `--redis` if the URL has several servers that are not a cluster.
  explicit Cluster(const std::string& url);

  /// The URL of the server that has the keys with this prefix. Throws BadInput naming `--prefix` if a cluster is
  /// used and the prefix has no hash tag (the keys of a queue must be in one slot). Throws ServerFailure if no server
  /// has the slot.
  std::string server_of(const std::string& prefix) const;

 private:
  struct Range {
    long long first, last;
    std::string server;
  };
  bool ask(const std::string& server);

  std::string url_;
  std::vector<Range> ranges_;  // empty: not a cluster
};

}  // namespace feedrate::redis
