#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "common/utf8.hpp"

namespace feedrate {

using Json = nlohmann::json;

/// Message of a JSON error, without the library's exception name in front.
inline std::string text_of(const Json::exception& error) {
  const std::string text = error.what();
  const std::size_t end = text.find("] ");
  return text.starts_with('[') && end != text.npos ? text.substr(end + 2) : text;
}

/// Replaces each byte that is not valid UTF-8 with \xHH, in all strings. Such bytes occur in host names, file names and
/// data that other programs put on a server.
inline void escape_texts(Json& json) {
  if (json.is_string()) json = utf8_escaped(json.get_ref<const std::string&>());
  if (!json.is_structured()) return;
  for (Json& member : json) escape_texts(member);
}

/// Serializes on one line, or indented if `indent` is given. Strings that are not valid UTF-8 are escaped.
inline std::string dumped(const Json& json, int indent = -1) {
  try {
    return json.dump(indent);
  } catch (const Json::type_error&) {
    Json escaped = json;
    escape_texts(escaped);
    return escaped.dump(indent);
  }
}

}  // namespace feedrate
