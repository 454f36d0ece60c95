#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "common/utf8.hpp"

namespace feedrate {

using Json = nlohmann::json;

/// What is wrong with a JSON text, without the library's name of the exception ahead of it.
inline std::string text_of(const Json::exception& error) {
  const std::string text = error.what();
  const std::size_t end = text.find("] ");
  return text.starts_with('[') && end != text.npos ? text.substr(end + 2) : text;
}

/// Replaces each byte that is not part of UTF-8 by \xHH, in all strings. Such bytes come from host and file names and
/// from data that other programs put on a server.
inline void escape_texts(Json& json) {
  if (json.is_string()) json = utf8_escaped(json.get_ref<const std::string&>());
  if (!json.is_structured()) return;
  for (Json& member : json) escape_texts(member);
}

/// As a text, on one line unless `indent` is given. Texts that are not UTF-8 are escaped.
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
