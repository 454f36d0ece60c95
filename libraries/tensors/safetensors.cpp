#include "libraries/tensors/safetensors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <istream>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "common/error.hpp"

namespace feedrate::tensors {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t kLengthBytes = 8, kMaxHeader = 100'000'000, kMaxIndex = 100'000'000;
constexpr std::array<std::pair<std::string_view, Dtype>, 16> kNames{{{"BOOL", Dtype::boolean},
                                                                     {"U8", Dtype::u8},
                                                                     {"I8", Dtype::i8},
                                                                     {"F8_E5M2", Dtype::e5m2},
                                                                     {"F8_E4M3", Dtype::e4m3},
                                                                     {"I16", Dtype::i16},
                                                                     {"U16", Dtype::u16},
                                                                     {"F16", Dtype::f16},
                                                                     {"BF16", Dtype::bf16},
                                                                     {"I32", Dtype::i32},
                                                                     {"U32", Dtype::u32},
                                                                     {"F32", Dtype::f32},
                                                                     {"F64", Dtype::f64},
                                                                     {"I64", Dtype::i64},
                                                                     {"U64", Dtype::u64},
                                                                     {"C64", Dtype::c64}}};

[[noreturn]] void reject(const std::string& what, const char* allowed = "a complete .safetensors file") {
  throw BadInput("FILE", what, allowed);
}

/// Parses an object whose members, and those of its members, have different names. Returns nothing if it is none.
std::optional<Json> parsed(const std::string& text) {
  constexpr int kDeepest = 16;
  bool repeated = false, deep = false;
  std::vector<std::set<std::string>> names;
  const auto see = [&](int depth, Json::parse_event_t event, Json& value) {
    if (depth > kDeepest) {
      deep = true;
      return false;
    }
    if (event == Json::parse_event_t::object_start) names.emplace_back();
    if (event == Json::parse_event_t::object_end) names.pop_back();
    if (event == Json::parse_event_t::key) repeated = !names.back().insert(value.get<std::string>()).second || repeated;
    return true;
  };
  Json value = Json::parse(text, see, false);
  if (deep || !value.is_object() || repeated) return std::nullopt;
  return value;
}

std::string text_of(const Json& value) {
  return value.dump(-1, ' ', true, Json::error_handler_t::replace).substr(0, 60);
}

StoredTensor tensor_of(const std::string& name, const Json& entry) {
  const auto invalid = [&](const char* what, const Json& value) {
    reject(fmt::format("tensor '{}' with the {} {}", name.substr(0, 60), what, text_of(value)));
  };
  const auto is_length = [](const Json& one) { return one.is_number_unsigned(); };
  if (!entry.is_object() || !entry.contains("dtype") || !entry.contains("shape") || !entry.contains("data_offsets") ||
      entry.size() != 3) {
    invalid("description", entry);
  }
  const Json &dtype = entry["dtype"], &shape = entry["shape"], &offsets = entry["data_offsets"];
  const auto known = dtype.is_string() ? std::ranges::find(kNames, dtype.get_ref<const std::string&>(),
                                                           &std::pair<std::string_view, Dtype>::first)
                                       : kNames.end();
  if (known == kNames.end()) invalid("dtype", dtype);
  if (!shape.is_array() || shape.size() > kMaxDimensions || !std::ranges::all_of(shape, is_length))
    invalid("shape", shape);
  if (!offsets.is_array() || offsets.size() != 2 || !std::ranges::all_of(offsets, is_length))
    invalid("data_offsets", offsets);
  StoredTensor tensor{.name = name, .layout = {.dtype = known->second}};
  for (const Json& length : shape) {
    if (length.get<std::uint64_t>() >> 62 != 0) invalid("shape", shape);
    tensor.layout.shape.push_back(length.get<std::int64_t>());
  }
  tensor.start = offsets[0];
  const std::uint64_t end = offsets[1];
  try {
    if (end < tensor.start || end - tensor.start != bytes_of(tensor.layout)) invalid("data_offsets", offsets);
  } catch (const BadInput&) {  // more than 2^62 bytes
    invalid("data_offsets", offsets);
  }
  tensor.bytes = end - tensor.start;
  return tensor;
}

}  // namespace

Safetensors read_safetensors(std::istream& file, std::uint64_t file_bytes) {
  std::array<unsigned char, kLengthBytes> length{};
  if (!file.read(reinterpret_cast<char*>(length.data()), kLengthBytes))
    reject(fmt::format("a file of {} bytes", file_bytes));
  std::uint64_t header_bytes = 0;
  for (std::size_t i = kLengthBytes; i-- > 0;) header_bytes = header_bytes << 8 | length[i];
  if (file_bytes < kLengthBytes || header_bytes > file_bytes - kLengthBytes || header_bytes > kMaxHeader) {
    reject(fmt::format("a header of {} bytes in a file of {}", header_bytes, file_bytes));
  }
  std::string text(header_bytes, '\0');
  if (!file.read(text.data(), static_cast<std::streamsize>(header_bytes))) reject("a file that ends within its header");
  const std::optional<Json> header = parsed(text);
  if (!header) reject("a header that is no JSON object with unique names");

  Safetensors found;
  for (const auto& [name, entry] : header->items()) {
    if (name != "__metadata__") {
      found.tensors.push_back(tensor_of(name, entry));
      continue;
    }
    if (!entry.is_object()) reject(fmt::format("metadata {}", text_of(entry)));
    for (const auto& [key, value] : entry.items()) {
      if (!value.is_string()) reject(fmt::format("metadata {} that is no string", text_of(value)));
      found.metadata[key] = value;
    }
  }
  std::ranges::sort(found.tensors, [](const StoredTensor& one, const StoredTensor& other) {
    return std::pair(one.start, one.bytes) < std::pair(other.start, other.bytes);
  });
  const std::uint64_t data = kLengthBytes + header_bytes;
  std::uint64_t end = 0;
  for (StoredTensor& tensor : found.tensors) {
    if (tensor.start != end) {
      reject(fmt::format("tensor '{}' at byte {} of the data, where the one before it ends at {}",
                         tensor.name.substr(0, 60), tensor.start, end));
    }
    end += tensor.bytes;
    if (end > file_bytes - data) {
      reject(fmt::format("tensor '{}', which ends {} bytes after the end of the file", tensor.name.substr(0, 60),
                         end - (file_bytes - data)));
    }
    tensor.start += data;
  }
  if (end != file_bytes - data) reject(fmt::format("{} bytes after the last tensor", file_bytes - data - end));
  return found;
}

std::map<std::string, std::string> read_safetensors_index(std::istream& file) {
  constexpr const char* kAllowed = "an index of .safetensors files with a weight_map";
  std::string text;
  std::array<char, 65536> part{};
  while (file.read(part.data(), part.size()) || file.gcount() != 0) {
    text.append(part.data(), static_cast<std::size_t>(file.gcount()));
    if (text.size() > kMaxIndex) reject(fmt::format("more than {} bytes", kMaxIndex), kAllowed);
  }
  const std::optional<Json> index = parsed(text);
  if (!index || !index->contains("weight_map") || !(*index)["weight_map"].is_object())
    reject("a file without a weight_map", kAllowed);
  std::map<std::string, std::string> files;
  for (const auto& [name, value] : (*index)["weight_map"].items()) {
    const bool is_name = value.is_string() && !value.get_ref<const std::string&>().empty() && value != "." &&
                         value != ".." &&
                         value.get_ref<const std::string&>().find_first_of(std::string("/\0", 2)) == std::string::npos;
    if (!is_name) reject(fmt::format("file {} of tensor '{}'", text_of(value), name.substr(0, 60)), kAllowed);
    files[name] = value;
  }
  return files;
}

}  // namespace feedrate::tensors
