#include "libraries/tensors/tensor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "common/error.hpp"
#include "common/utf8.hpp"

namespace feedrate::tensors {
namespace {

struct Kind {
  std::string_view name;
  std::size_t bytes;
};
/// In the order of Dtype.
constexpr std::array<Kind, 17> kKinds{{{"f16", 2},
                                       {"bf16", 2},
                                       {"f32", 4},
                                       {"f64", 8},
                                       {"i8", 1},
                                       {"i16", 2},
                                       {"i32", 4},
                                       {"i64", 8},
                                       {"u8", 1},
                                       {"u16", 2},
                                       {"u32", 4},
                                       {"u64", 8},
                                       {"bool", 1},
                                       {"e4m3", 1},
                                       {"e5m2", 1},
                                       {"c64", 8},
                                       {"c128", 16}}};
constexpr std::int64_t kMaxBytes = std::int64_t{1} << 62;

std::string dtype_names() {
  std::string all;
  for (const Kind& kind : kKinds) all += fmt::format("{}{}", all.empty() ? "" : ", ", kind.name);
  return all;
}

}  // namespace

std::string_view name_of(Dtype dtype) { return kKinds.at(static_cast<std::size_t>(dtype)).name; }

Dtype dtype_of(std::string_view name) {
  const auto found = std::ranges::find(kKinds, name, &Kind::name);
  if (found == kKinds.end()) throw BadInput("dtype", std::string(name), dtype_names());
  return static_cast<Dtype>(found - kKinds.begin());
}

std::size_t size_of(Dtype dtype) { return kKinds.at(static_cast<std::size_t>(dtype)).bytes; }

std::size_t bytes_of(const Layout& layout) {
  const auto reject = [](const char* what, std::int64_t value, const char* allowed) {
    throw BadInput(what, std::to_string(value), allowed);
  };
  const auto& [dtype, shape, strides] = layout;
  if (shape.size() > kMaxDimensions) {
    reject("shape", static_cast<std::int64_t>(shape.size()), "at most 32 dimensions");
  }
  if (!strides.empty() && strides.size() != shape.size()) {
    reject("strides", static_cast<std::int64_t>(strides.size()), "one for each dimension, or none");
  }
  bool empty = false;
  for (const std::int64_t length : shape) {
    if (length < 0) reject("shape", length, "lengths of 0 and more");
    empty = empty || length == 0;
  }
  for (const std::int64_t stride : strides) {
    if (stride < 0) reject("strides", stride, "0 and more, in elements");
  }
  if (empty) return 0;
  constexpr auto kTooMany = "at most 2^62 bytes";
  const auto size = static_cast<std::int64_t>(size_of(dtype));
  std::int64_t span = 1;  // elements from the first to the last, inclusive
  for (std::size_t i = 0; i < shape.size(); ++i) {
    std::int64_t further = 0;
    const bool fits = strides.empty() ? !__builtin_mul_overflow(span, shape[i], &span)
                                      : !__builtin_mul_overflow(shape[i] - 1, strides[i], &further) &&
                                            !__builtin_add_overflow(span, further, &span);
    if (!fits || span > kMaxBytes / size) reject("shape", shape[i], kTooMany);
  }
  return static_cast<std::size_t>(span * size);
}

void check_name(std::string_view name) {
  constexpr auto kAllowed = "1 to 512 bytes of UTF-8 without control characters";
  if (name.empty() || name.size() > kMaxNameBytes) throw BadInput("name", std::string(name.substr(0, 64)), kAllowed);
  for (std::size_t at = 0; at < name.size();) {
    const std::size_t length = utf8_sequence(name.substr(at));
    const auto byte = static_cast<unsigned char>(name[at]);
    if (length == 0 || byte < 0x20 || byte == 0x7F) {
      throw BadInput("name", fmt::format("byte {} is 0x{:02x}", at, byte), kAllowed);
    }
    at += length;
  }
}

void check_ttl(const CreateOptions& options) {
  if (options.ttl_seconds && !(*options.ttl_seconds > 0 && *options.ttl_seconds <= 1e9)) {  // also rejects NaN
    throw BadInput("ttl", fmt::format("{}", *options.ttl_seconds), "seconds above 0, at most 1e9");
  }
}

}  // namespace feedrate::tensors
