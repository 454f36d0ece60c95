#pragma once
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "libraries/tensors/protocol.hpp"
#include "libraries/tensors/store/table.hpp"

namespace feedrate::tensors {

/// The daemon's identity, as reported in answers.
struct Identity {
  std::string device, node, kind, socket;
  std::string instance;  ///< this run of the daemon; chunk numbers and generations are valid within one instance
};

/// The name of a tensor's memory in the registry: kind, instance, chunk.
std::string handle_of(const Identity&, const Description&);

struct Answer {
  nlohmann::json json = {};
  std::vector<int> descriptors = {};  ///< to be sent with the answer; the daemon owns them
  std::string written = {};           ///< used instead of `json` for long or time-critical answers
  std::string text() const;           ///< never longer than kMaxPacketBytes
};

/// Executes a request and returns the answer; an invalid request is answered with the reason. `client`: the connection
/// of the request; empty for the Redis list, whose requests get no leases. It does not handle `Op::wait`, whose answer
/// is sent later.
Answer act(Table& table, const Identity& identity, std::optional<ClientId> client, const Request& request);

}  // namespace feedrate::tensors
