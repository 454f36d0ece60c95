#pragma once
#include <nlohmann/json.hpp>
#include <string>

namespace feedrate {

using Json = nlohmann::json;

/// What is wrong with a JSON text, without the library's name of the exception ahead of it.
inline std::string text_of(const Json::exception& error) {
  const std::string text = error.what();
  const std::size_t end = text.find("] ");
  return text.starts_with('[') && end != text.npos ? text.substr(end + 2) : text;
}

}  // namespace feedrate
