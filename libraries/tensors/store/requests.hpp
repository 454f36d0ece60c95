#pragma once
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "libraries/tensors/protocol.hpp"
#include "libraries/tensors/store/table.hpp"

namespace feedrate::tensors {

/// What the daemon says of itself where a request asks for it.
struct Identity {
  std::string device, node, kind, socket;
  std::string instance;  ///< of this life of the daemon: numbers of chunks and generations are of one instance
};

/// How a tensor's memory is named in the registry: kind, instance, chunk.
std::string handle_of(const Identity&, const Description&);

struct Answer {
  nlohmann::json json = {};
  std::vector<int> descriptors = {};  ///< to send beside it; the daemon's own
  std::string written = {};           ///< instead of `json`, what is long, or waited for
  std::string text() const;           ///< never above kMostPacketBytes
};

/// Does what a request says and answers it; a request that can't be is answered with why. `client`: whose connection it
/// came by; none for the Redis list, whose requests get no leases. `Op::wait` is not for this: it has no answer yet.
Answer act(Table& table, const Identity& identity, std::optional<ClientId> client, const Request& request);

}  // namespace feedrate::tensors
