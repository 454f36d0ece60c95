#include "experiments/cli/npy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <istream>
#include <nlohmann/json.hpp>
#include <regex>
#include <string_view>
#include <utility>

#include "common/error.hpp"

namespace feedrate {
namespace {

using tensors::Dtype;

static_assert(std::endian::native == std::endian::little);
constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kLineUp = 64, kMaxHeader = 4096;
constexpr std::array<std::pair<std::string_view, Dtype>, 14> kNames{{{"<f2", Dtype::f16},
                                                                     {"<f4", Dtype::f32},
                                                                     {"<f8", Dtype::f64},
                                                                     {"|i1", Dtype::i8},
                                                                     {"<i2", Dtype::i16},
                                                                     {"<i4", Dtype::i32},
                                                                     {"<i8", Dtype::i64},
                                                                     {"|u1", Dtype::u8},
                                                                     {"<u2", Dtype::u16},
                                                                     {"<u4", Dtype::u32},
                                                                     {"<u8", Dtype::u64},
                                                                     {"|b1", Dtype::boolean},
                                                                     {"<c8", Dtype::c64},
                                                                     {"<c16", Dtype::c128}}};

[[noreturn]] void reject(const std::string& what) { throw BadInput("FILE", what, "a .npy file as NumPy writes it"); }

/// The header's text, a Python dict, as JSON.
nlohmann::json dict_of(std::string text) {
  static const std::regex trailing_comma(R"(,\s*([\])}]))");
  text = std::regex_replace(text, trailing_comma, "$1");
  for (const auto& [python, json] : {std::pair{'\'', '"'}, {'(', '['}, {')', ']'}})
    std::ranges::replace(text, python, json);
  for (const auto& [python, json] : {std::pair{"True", "true"}, {"False", "false"}}) {
    if (const auto at = text.find(python); at != text.npos) text.replace(at, std::strlen(python), json);
  }
  auto dict = nlohmann::json::parse(text, nullptr, false);
  if (!dict.is_object()) reject("a header that is not a complete dict");
  return dict;
}

std::vector<std::int64_t> lengths_of(const nlohmann::json& shape) {
  const auto is_number = [](const nlohmann::json& length) { return length.is_number_integer(); };
  if (!shape.is_array() || !std::ranges::all_of(shape, is_number)) reject("a malformed shape");
  return shape;
}

Dtype dtype_of_file(std::string_view text, const std::string& dtype) {
  const auto known = std::ranges::find(kNames, text, &std::pair<std::string_view, Dtype>::first);
  if (known != kNames.end() && dtype.empty()) return known->second;
  if (dtype.empty()) reject(fmt::format("elements of type '{:.20}' (specify the type with --dtype)", text));
  const Dtype asked = tensors::dtype_of(dtype);
  const std::string size = std::to_string(tensors::size_of(asked));
  if (text.size() < 3 || text.substr(2) != size || text.front() == '>') {
    reject(fmt::format("elements of type '{:.20}', which cannot hold {}", text, dtype));
  }
  return asked;
}

}  // namespace

NpyHeader read_npy_header(std::istream& file, const std::string& dtype) {
  std::size_t at = 0;
  const auto read = [&](std::size_t bytes) {
    std::string text(bytes, '\0');
    file.read(text.data(), static_cast<std::streamsize>(bytes));
    if (static_cast<std::size_t>(file.gcount()) != bytes)
      reject(fmt::format("a file that ends before byte {}", at + bytes));
    at += bytes;
    return text;
  };
  if (read(kMagic.size()) != kMagic) reject("a file without the signature \\x93NUMPY");
  const int version = static_cast<unsigned char>(read(2).front());
  if (version < 1 || version > 3) reject(fmt::format("format version {}", version));
  const std::string size = read(version == 1 ? 2 : 4);
  std::size_t length = 0;
  for (std::size_t i = size.size(); i-- > 0;) length = length << 8 | static_cast<unsigned char>(size[i]);
  if (length > kMaxHeader) reject(fmt::format("a header of {} bytes", length));
  const nlohmann::json dict = dict_of(read(length));
  NpyHeader header{.layout = {}, .data_at = at};
  for (const auto& [key, value] : dict.items()) {
    if (key != "descr" && key != "fortran_order" && key != "shape") {
      reject(fmt::format("a header with the key '{:.20}'", key));
    }
  }
  if (dict.size() != 3) reject("a header without descr, fortran_order and shape");
  if (!dict["fortran_order"].is_boolean()) reject("a fortran_order that is neither True nor False");
  if (!dict["descr"].is_string()) reject("elements of several fields");
  header.layout.shape = lengths_of(dict["shape"]);
  header.layout.dtype = dtype_of_file(dict["descr"].get_ref<const std::string&>(), dtype);
  if (tensors::bytes_of(header.layout) != 0 && dict["fortran_order"] && header.layout.shape.size() > 1) {
    std::int64_t stride = 1;
    for (const std::int64_t extent : header.layout.shape) {
      header.layout.strides.push_back(stride);
      stride *= extent;
    }
  }
  return header;
}

std::string npy_header(Dtype dtype, const std::vector<std::int64_t>& shape) {
  const auto known = std::ranges::find(kNames, dtype, &std::pair<std::string_view, Dtype>::second);
  const std::string descr =
      known != kNames.end() ? std::string(known->first) : fmt::format("|V{}", tensors::size_of(dtype));
  std::string lengths;
  for (const std::int64_t length : shape) lengths += fmt::format("{}, ", length);
  if (shape.size() > 1) lengths.resize(lengths.size() - 2);
  if (shape.size() == 1) lengths.pop_back();
  std::string text = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descr, lengths);
  const std::size_t begin = kMagic.size() + 4;
  text.append(kLineUp - (begin + text.size() + 1) % kLineUp, ' ');
  text += '\n';
  std::string all(kMagic);
  all += '\x01';
  all += '\0';
  all += static_cast<char>(text.size() & 0xFF);
  all += static_cast<char>(text.size() >> 8);
  return all + text;
}

}  // namespace feedrate
