#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "libraries/tensors/socket.hpp"
#include "libraries/tensors/store/table.hpp"

/// What clients and daemon say to each other: JSON objects, one a packet of the socket or an element of the list.
/// README.md in this folder has the whole of it.
namespace feedrate::tensors {

enum class Op { create, commit, get, release, remove, list, stat, pin, unpin, seal, evict, wait, status };

struct Request {
  Op op = Op::status;
  std::string name = {};
  Layout layout = {};
  CreateOptions create = {};
  bool staged = false;           ///< of create: without its name until `commit`
  std::uint64_t generation = 0;  ///< 0: whichever has the name
  std::uint64_t lease = 0;
  std::string after = {};              ///< of a list: names behind this one
  std::uint64_t bytes = 0;             ///< to evict
  double timeout_seconds = 0;          ///< to wait
  std::string device = {}, node = {};  ///< whose store is meant; empty: any
  std::string reply_to = {};           ///< of the Redis list's requests: the list for the answer
};

/// Throws BadInput that says what is wrong: no JSON object, a field that is missing, unknown, of another type or out of
/// range. Never trusts its text: it comes from other processes.
Request parse_request(std::string_view text);
/// A field of a request that could not be read as a whole; empty where it has none that can be.
std::string reply_to_of(std::string_view text);

/// As JSON: the text alone, which long lists need fast, and parsed.
std::string written(const Description&);
nlohmann::json to_json(const Description&);
/// Throws Failure: what the daemon says must be right.
Description description_of(const nlohmann::json&);

/// Bytes as JSON can carry them: two digits each. of_hex() throws Failure where it is none.
std::string to_hex(std::string_view bytes);
std::string of_hex(std::string_view digits);

/// {"ok": false, "error": code, "message": text} of what is being thrown.
nlohmann::json to_json(const std::exception&);
/// Throws what such an answer says; nothing where `ok` is true.
void throw_if_error(const nlohmann::json& answer);

}  // namespace feedrate::tensors
