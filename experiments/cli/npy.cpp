#include "experiments/cli/npy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <istream>
#include <optional>
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

/// Parses the header's text, a Python dict, token by token.
class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}
  bool skip(char mark) {
    while (!rest_.empty() && (rest_.front() == ' ' || rest_.front() == '\n')) rest_.remove_prefix(1);
    if (rest_.empty() || rest_.front() != mark) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void expect(char mark) {
    if (!skip(mark)) reject(fmt::format("a header without '{}' before '{:.20}'", mark, rest_));
  }
  std::string_view quoted() {
    expect('\'');
    const auto end = rest_.find('\'');
    if (end == rest_.npos) reject("a header with an unterminated string");
    const std::string_view text = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return text;
  }
  bool boolean() {
    skip(' ');
    for (const auto& [word, value] : {std::pair<std::string_view, bool>{"True", true}, {"False", false}}) {
      if (!rest_.starts_with(word)) continue;
      rest_.remove_prefix(word.size());
      return value;
    }
    reject("a fortran_order that is neither True nor False");
  }
  std::vector<std::int64_t> tuple() {
    std::vector<std::int64_t> lengths;
    expect('(');
    while (!skip(')')) {
      std::int64_t length = 0;
      const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), length);
      if (error != std::errc() || lengths.size() == tensors::kMaxDimensions) reject("a malformed shape");
      rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
      lengths.push_back(length);
      if (!skip(',')) {
        expect(')');
        break;
      }
    }
    return lengths;
  }

 private:
  std::string_view rest_;
};

Dtype dtype_of_file(std::string_view text, const std::string& dtype) {
  const auto known = std::ranges::find(kNames, text, &std::pair<std::string_view, Dtype>::first);
  if (known != kNames.end() && dtype.empty()) return known->second;
  if (dtype.empty()) reject(fmt::format("elements of type '{:.20}' (use --dtype to name it)", text));
  const Dtype asked = tensors::dtype_of(dtype);
  const std::string size = std::to_string(tensors::size_of(asked));
  if (text.size() < 3 || text.substr(2) != size || text.front() == '>') {
    reject(fmt::format("elements of type '{:.20}', which can't hold {}", text, dtype));
  }
  return asked;
}

}  // namespace

NpyHeader read_npy_header(std::span<const std::byte> bytes, const std::string& dtype) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!text.starts_with(kMagic) || text.size() < 12) reject("a file without the signature \\x93NUMPY");
  const auto byte = [&](std::size_t at) { return static_cast<std::size_t>(static_cast<unsigned char>(text[at])); };
  const std::size_t version = byte(6), size_bytes = version == 1 ? 2 : 4;
  if (version < 1 || version > 3) reject(fmt::format("format version {}", version));
  std::size_t length = 0;
  for (std::size_t i = 0; i < size_bytes; ++i) length |= byte(8 + i) << (8 * i);
  const std::size_t begin = 8 + size_bytes;
  if (length > kMaxHeader || begin + length > text.size()) reject(fmt::format("a header of {} bytes", length));
  NpyHeader header{.layout = {}, .data_at = begin + length};
  Reader reader(text.substr(begin, length));
  std::optional<std::string_view> descr;
  std::optional<bool> fortran;
  bool shaped = false;
  reader.expect('{');
  while (!reader.skip('}')) {
    const std::string_view key = reader.quoted();
    reader.expect(':');
    if (key == "descr") {
      reader.skip(' ');
      descr = reader.quoted();
    } else if (key == "fortran_order") {
      fortran = reader.boolean();
    } else if (key == "shape") {
      header.layout.shape = reader.tuple();
      shaped = true;
    } else {
      reject(fmt::format("a header with the key '{:.20}'", key));
    }
    reader.skip(',');
  }
  if (!descr || !fortran || !shaped) reject("a header without descr, fortran_order and shape");
  header.layout.dtype = dtype_of_file(*descr, dtype);
  if (tensors::bytes_of(header.layout) != 0 && *fortran && header.layout.shape.size() > 1) {
    std::int64_t stride = 1;
    for (const std::int64_t extent : header.layout.shape) {
      header.layout.strides.push_back(stride);
      stride *= extent;
    }
  }
  return header;
}

NpyHeader read_npy_header(std::istream& file, const std::string& dtype) {
  std::string head;
  const auto read = [&](std::size_t bytes) {
    const std::size_t had = head.size();
    head.resize(had + bytes);
    file.read(head.data() + had, static_cast<std::streamsize>(bytes));
    head.resize(had + static_cast<std::size_t>(file.gcount()));
  };
  read(10);
  if (head.size() == 10 && head.starts_with(kMagic)) {
    if (head[6] != 1) read(2);
    std::size_t length = 0;
    for (std::size_t i = head.size(); i-- > 8;) length = length << 8 | static_cast<unsigned char>(head[i]);
    if (length <= kMaxHeader) read(length);
  }
  return read_npy_header(std::as_bytes(std::span(head)), dtype);
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
