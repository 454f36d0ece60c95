#pragma once
#include <string>
#include <string_view>

namespace feedrate::redis {

/// The slot of a key in a Redis Cluster: CRC-16/XMODEM of its hash tag, or of all of it where it has none, modulo 16384
/// (Redis Cluster specification, "Key distribution model").
unsigned slot_of(std::string_view key);

/// What stands between the first { and the next }; empty where the key has no hash tag.
std::string_view hash_tag(std::string_view key);

/// The URL of the cluster's server that has the key's slot now; `url` itself where its server is no cluster's. Throws
/// ServerFailure where no server has the slot, BadInput naming `--prefix` where the key has no hash tag: the keys of a
/// queue must lie in one slot.
std::string node_of(const std::string& url, std::string_view key);

}  // namespace feedrate::redis
