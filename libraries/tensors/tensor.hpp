#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/export.hpp"

namespace feedrate::tensors {

/// What an element is. Names are those of NumPy and ml_dtypes in short: f16, bf16, e4m3, c64 (two f32) …
enum class Dtype : std::uint8_t {
  f16,
  bf16,
  f32,
  f64,
  i8,
  i16,
  i32,
  i64,
  u8,
  u16,
  u32,
  u64,
  boolean,
  e4m3,
  e5m2,
  c64,
  c128
};

inline constexpr std::size_t kMostDimensions = 32;  ///< as NumPy's oldest limit
inline constexpr std::size_t kMostNameBytes = 512;  ///< of a tensor's name, in UTF-8
inline constexpr std::size_t kDataAlignment = 256;  ///< bytes; as cudaMalloc aligns

FEEDRATE_EXPORT std::string_view name_of(Dtype);
/// Throws BadInput with the names that are known.
FEEDRATE_EXPORT Dtype dtype_of(std::string_view name);
/// Bytes of an element.
FEEDRATE_EXPORT std::size_t size_of(Dtype);

/// What lies in a tensor's memory. Strides count elements, as DLPack's do; empty: row by row, without gaps.
struct Layout {
  Dtype dtype = Dtype::f32;
  std::vector<std::int64_t> shape = {};  ///< empty: one element; a length of 0: no elements
  std::vector<std::int64_t> strides = {};

  bool operator==(const Layout&) const = default;
};

/// Bytes from the first to the last element. Throws BadInput naming `shape` or `strides` where these can't be: negative
/// lengths, a stride for each length or none, elements in front of the first, more than 2^62 bytes.
FEEDRATE_EXPORT std::size_t bytes_of(const Layout&);
/// Throws BadInput unless `name` is 1 to 512 bytes of UTF-8 without control characters.
FEEDRATE_EXPORT void check_name(std::string_view name);

/// Where a tensor's bytes lie.
struct Place {
  std::uint64_t chunk = 0;  ///< number of a chunk, never given twice; 0: no bytes, no place
  std::size_t offset = 0;
  std::size_t bytes = 0;  ///< taken, which may be more than was asked for
};

/// What a daemon says of a tensor.
struct Description {
  std::string name;
  std::uint64_t generation = 0;  ///< never given twice by one daemon: tells a tensor from a later one of its name
  Layout layout = {};
  std::size_t bytes = 0;  ///< of the elements
  Place place = {};
  std::uint64_t slot = 0;  ///< of its words
  std::uint64_t leases = 0;
  bool pinned = false, sealed = false;
  std::uint64_t created_ms = 0;  ///< Unix time
  std::uint64_t expires_ms = 0;  ///< Unix time at which the name is deleted; 0: never
};

struct CreateOptions {
  bool pinned = false;                     ///< never evicted
  bool evict = false;                      ///< where there is no room, evict others
  std::optional<double> ttl_seconds = {};  ///< the name is deleted so long after it was given
  bool replace = false;                    ///< of stage(): the commit deletes the tensor that has the name by then
};
/// Throws BadInput for a time to live that is no number of seconds above 0.
FEEDRATE_EXPORT void check_ttl(const CreateOptions& options);

}  // namespace feedrate::tensors
