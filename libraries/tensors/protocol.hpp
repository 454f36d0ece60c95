#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "libraries/tensors/socket.hpp"
#include "libraries/tensors/store/table.hpp"

/// The protocol between clients and the daemon: JSON objects, one per socket packet or list element.
/// README.md in this folder documents it.
namespace feedrate::tensors {

enum class Op { create, commit, get, release, remove, list, stat, pin, unpin, seal, evict, wait, status };

struct Request {
  Op op = Op::status;
  std::string name = {};
  Layout layout = {};
  CreateOptions create = {};
  bool staged = false;           ///< for `create`: the tensor has no name until `commit`
  std::uint64_t generation = 0;  ///< 0: any generation
  std::uint64_t lease = 0;
  std::string after = {};              ///< for `list`: names after this one
  std::uint64_t bytes = 0;             ///< bytes to evict
  double timeout_seconds = 0;          ///< timeout of `wait`
  std::string device = {}, node = {};  ///< device and node that the store must have; empty: any
  std::string reply_to = {};           ///< for requests from the Redis list: the list for the answer
};

/// Throws BadInput with the reason if the string is not a JSON object or a field is missing, unknown, of the wrong type
/// or out of range. The string is sent by another process and is never trusted.
Request parse_request(std::string_view text);
/// The `reply_to` field of a request that could not be parsed; empty if it cannot be read.
std::string reply_to_of(std::string_view text);

/// A description as JSON: as text, for speed with long lists, and as a value.
std::string written(const Description&);
nlohmann::json to_json(const Description&);
/// Throws Failure if the daemon's description is invalid.
Description description_of(const nlohmann::json&);

/// Bytes as hexadecimal text for JSON: two digits each. of_hex() throws Failure for invalid text.
std::string to_hex(std::string_view bytes);
std::string of_hex(std::string_view digits);

/// {"ok": false, "error": code, "message": text} for an exception.
nlohmann::json to_json(const std::exception&);
/// Throws the error in such an answer; does nothing if `ok` is true.
void throw_if_error(const nlohmann::json& answer);

}  // namespace feedrate::tensors
