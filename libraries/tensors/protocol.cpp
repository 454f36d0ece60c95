#include "libraries/tensors/protocol.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "common/error.hpp"
#include "libraries/tensors/errors.hpp"

namespace feedrate::tensors {
namespace {

using Json = nlohmann::json;

struct OpName {
  std::string_view name;
  Op op;
  std::string_view fields;  ///< fields that a request may have in addition to the common ones; "!": required
};
constexpr std::array<OpName, 13> kOps{{
    {"create", Op::create, "!name !dtype !shape strides pin evict ttl staged replace"},
    {"commit", Op::commit, "!lease"},
    {"get", Op::get, "!name generation"},
    {"release", Op::release, "!lease"},
    {"delete", Op::remove, "!name generation"},
    {"list", Op::list, "after"},
    {"stat", Op::stat, "!name"},
    {"pin", Op::pin, "!name"},
    {"unpin", Op::unpin, "!name"},
    {"seal", Op::seal, "!name"},
    {"gc", Op::evict, "bytes"},
    {"wait", Op::wait, "!name !timeout"},
    {"status", Op::status, ""},
}};
/// The fields that any request may have.
constexpr std::array<std::string_view, 5> kOfAll{"op", "reply_to", "pid", "node", "device"};

std::string op_names() {
  std::string all;
  for (const OpName& one : kOps) all += fmt::format("{}{}", all.empty() ? "" : ", ", one.name);
  return all;
}

/// A short form of a value for messages.
std::string shown(const Json& value) {
  constexpr std::size_t kMax = 80;
  // Never dump arrays and objects: they may be nested as deeply as the packet size allows.
  if (value.is_structured()) return fmt::format("an {} of {}", value.type_name(), value.size());
  std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  return text.size() <= kMax ? text : text.substr(0, kMax) + "...";
}

const std::string& text_of(const Json& value, const char* field) {
  if (!value.is_string()) throw BadInput(field, shown(value), "a string");
  return value.get_ref<const std::string&>();
}
/// For fields that an answer may repeat.
const std::string& short_text_of(const Json& value, const char* field) {
  const std::string& text = text_of(value, field);
  if (text.size() > kMaxNameBytes) throw BadInput(field, shown(value), "a string of at most 512 bytes");
  return text;
}
std::uint64_t count_of(const Json& value, const char* field) {
  if (!value.is_number_unsigned()) throw BadInput(field, shown(value), "a whole number, 0 or more");
  return value.get<std::uint64_t>();
}
bool flag_of(const Json& value, const char* field) {
  if (!value.is_boolean()) throw BadInput(field, shown(value), "true, false");
  return value.get<bool>();
}
double seconds_of(const Json& value, const char* field) {
  if (!value.is_number() || !std::isfinite(value.get<double>())) throw BadInput(field, shown(value), "seconds");
  return value.get<double>();
}
std::vector<std::int64_t> lengths_of(const Json& value, const char* field) {
  if (!value.is_array() || value.size() > kMaxDimensions) {
    throw BadInput(field, shown(value), "an array of at most 32 whole numbers");
  }
  std::vector<std::int64_t> lengths;
  for (const Json& one : value) {
    if (!one.is_number_integer() || (one.is_number_unsigned() && one.get<std::uint64_t>() > std::uint64_t{INT64_MAX})) {
      throw BadInput(field, shown(one), "whole numbers");
    }
    lengths.push_back(one.get<std::int64_t>());
  }
  return lengths;
}

void check_fields(const Json& json, const OpName& op) {
  std::set<std::string_view> allowed(kOfAll.begin(), kOfAll.end());
  for (std::string_view rest = op.fields; !rest.empty();) {
    const auto end = std::min(rest.find(' '), rest.size());
    std::string_view field = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    const bool must = field.starts_with('!');
    if (must) field.remove_prefix(1);
    if (must && !json.contains(field)) {
      throw BadInput(std::string(field), "", fmt::format("a value, which '{}' requires", op.name));
    }
    allowed.insert(field);
  }
  for (const auto& [field, value] : json.items()) {
    if (allowed.contains(field)) continue;
    std::string names;
    for (const std::string_view one : allowed) names += fmt::format("{}{}", names.empty() ? "" : ", ", one);
    throw BadInput("field", shown(field), fmt::format("{} (of '{}')", names, op.name));
  }
}

/// The value is discarded (is_discarded()) if the string is not JSON.
Json parsed(std::string_view text) { return Json::parse(text, nullptr, false); }

}  // namespace

Request parse_request(std::string_view text) {
  if (text.size() > kMaxPacketBytes) {
    throw BadInput("request", fmt::format("{} bytes", text.size()), "at most 64 KiB");
  }
  const Json json = parsed(text);
  if (!json.is_object()) throw BadInput("request", json.is_discarded() ? "no JSON" : shown(json), "a JSON object");
  if (!json.contains("op")) throw BadInput("op", "", op_names());
  const std::string& op = text_of(json["op"], "op");
  const auto known = std::ranges::find(kOps, op, &OpName::name);
  if (known == kOps.end()) throw BadInput("op", shown(json["op"]), op_names());
  check_fields(json, *known);
  Request request{.op = known->op};
  for (const auto& [field, value] : json.items()) {
    if (field == "name") check_name(request.name = text_of(value, "name"));
    if (field == "dtype") request.layout.dtype = dtype_of(short_text_of(value, "dtype"));
    if (field == "shape") request.layout.shape = lengths_of(value, "shape");
    if (field == "strides" && !value.is_null()) request.layout.strides = lengths_of(value, "strides");
    if (field == "pin") request.create.pinned = flag_of(value, "pin");
    if (field == "evict") request.create.evict = flag_of(value, "evict");
    if (field == "staged") request.staged = flag_of(value, "staged");
    if (field == "replace") request.create.replace = flag_of(value, "replace");
    if (field == "ttl" && !value.is_null()) request.create.ttl_seconds = seconds_of(value, "ttl");
    if (field == "generation") request.generation = count_of(value, "generation");
    if (field == "lease") request.lease = count_of(value, "lease");
    if (field == "after") request.after = text_of(value, "after");
    if (field == "bytes") request.bytes = count_of(value, "bytes");
    if (field == "timeout") request.timeout_seconds = seconds_of(value, "timeout");
    if (field == "device") request.device = short_text_of(value, "device");
    if (field == "node") request.node = short_text_of(value, "node");
    if (field == "reply_to") request.reply_to = text_of(value, "reply_to");
  }
  if (request.create.replace && !request.staged) throw BadInput("replace", "true", "false, unless `staged` is true");
  bytes_of(request.layout);
  return request;
}

std::string reply_to_of(std::string_view text) {
  const Json json = text.size() > kMaxPacketBytes ? Json() : parsed(text);
  return json.is_object() && json.contains("reply_to") && json["reply_to"].is_string() ? json["reply_to"] : "";
}

std::string written(const Description& about) {
  std::string text = fmt::format(
      R"({{"name":{},"dtype":"{}","shape":[{}],"bytes":{},"generation":{},"refcount":{},"chunk":{},"offset":{},)"
      R"("taken":{},"slot":{},"pinned":{},"sealed":{},"ctime_ms":{})",
      Json(about.name).dump(-1, ' ', false, Json::error_handler_t::replace), name_of(about.layout.dtype),
      fmt::join(about.layout.shape, ","), about.bytes, about.generation, about.leases, about.place.chunk,
      about.place.offset, about.place.bytes, about.slot, about.pinned, about.sealed, about.created_ms);
  if (!about.layout.strides.empty()) text += fmt::format(R"(,"strides":[{}])", fmt::join(about.layout.strides, ","));
  if (about.expires_ms != 0) text += fmt::format(R"(,"expires_ms":{})", about.expires_ms);
  return text += '}';
}

Json to_json(const Description& about) { return Json::parse(written(about)); }

Description description_of(const Json& json) {
  try {
    Description about{.name = json.at("name")};
    about.generation = json.at("generation");
    about.layout = {dtype_of(json.at("dtype").get<std::string>()), json.at("shape"), {}};
    if (json.contains("strides")) json.at("strides").get_to(about.layout.strides);
    about.bytes = json.at("bytes");
    about.place = {json.at("chunk"), json.at("offset"), json.at("taken")};
    about.slot = json.at("slot");
    about.leases = json.at("refcount");
    about.pinned = json.at("pinned");
    about.sealed = json.at("sealed");
    about.created_ms = json.at("ctime_ms");
    about.expires_ms = json.value("expires_ms", std::uint64_t{0});
    return about;
  } catch (const std::exception& error) {
    throw Failure(fmt::format("the daemon sent an invalid description of a tensor: {}", error.what()));
  }
}

std::string to_hex(std::string_view bytes) {
  std::string digits;
  for (const char byte : bytes) digits += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return digits;
}

std::string of_hex(std::string_view digits) {
  std::string bytes;
  for (std::size_t at = 0; at < digits.size(); at += 2) {
    unsigned value = 0;
    const char* const end = digits.data() + std::min(at + 2, digits.size());
    const auto read = std::from_chars(digits.data() + at, end, value, 16);
    if (read.ec != std::errc() || read.ptr != digits.data() + at + 2)
      throw Failure("a handle is not a hexadecimal number");
    bytes += static_cast<char>(value);
  }
  return bytes;
}

Json to_json(const std::exception& error) {
  const auto* const of_store = dynamic_cast<const StoreError*>(&error);
  const bool of_request = dynamic_cast<const BadInput*>(&error) != nullptr;
  const std::string code = of_store != nullptr ? of_store->code : of_request ? "bad_request" : "failed";
  return {{"ok", false}, {"error", code}, {"message", error.what()}};
}

void throw_if_error(const Json& answer) {
  if (!answer.is_object() || !answer.contains("ok"))
    throw Failure("the daemon sent an invalid answer: " + shown(answer));
  if (answer.value("ok", false)) return;
  const std::string code = answer.value("error", "failed"), text = answer.value("message", "no reason given");
  if (code == "bad_request") throw BadInput(text);
  if (code == "not_found") throw NotFound(text);
  if (code == "exists") throw AlreadyExists(text);
  if (code == "out_of_memory") throw OutOfMemory(text);
  if (code == "limit") throw LimitReached(text);
  if (code == "timeout") throw TimedOut(text);
  throw StoreError(code, text);
}

}  // namespace feedrate::tensors
