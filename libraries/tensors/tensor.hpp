#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/export.hpp"

namespace feedrate::tensors {

/// The type of an element. The names are short forms of those in NumPy and ml_dtypes: f16, bf16, e4m3, c64 (two f32) …
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

inline constexpr std::size_t kMaxDimensions = 32;   ///< NumPy's original limit
inline constexpr std::size_t kMaxNameBytes = 512;   ///< length limit of a tensor's name, in UTF-8
inline constexpr std::size_t kDataAlignment = 256;  ///< in bytes; the same as cudaMalloc

FEEDRATE_EXPORT std::string_view name_of(Dtype);
/// Throws BadInput with the allowed names.
FEEDRATE_EXPORT Dtype dtype_of(std::string_view name);
/// Size of an element in bytes.
FEEDRATE_EXPORT std::size_t size_of(Dtype);

/// The layout of a tensor's memory. Strides are in elements, as in DLPack; empty: row-major, without gaps.
struct Layout {
  Dtype dtype = Dtype::f32;
  std::vector<std::int64_t> shape = {};  ///< empty: one element; a length of 0: no elements
  std::vector<std::int64_t> strides = {};

  bool operator==(const Layout&) const = default;
};

/// Bytes from the first to the last element. Throws BadInput naming `shape` or `strides` for negative lengths, a number
/// of strides that differs from the number of dimensions, elements before the first one, or more than 2^62 bytes.
FEEDRATE_EXPORT std::size_t bytes_of(const Layout&);
/// Throws BadInput unless `name` is 1 to 512 bytes of UTF-8 without control characters.
FEEDRATE_EXPORT void check_name(std::string_view name);

/// The state of a tensor that every process can read without a request: a cache line that all of them map.
///
/// Versions order writers and readers. A writer sets `begun` to the next version, writes, and then sets `done` to it.
/// `done` is set by the host, or by the stream that wrote the data (cuStreamWriteValue64). Version 0 is the initial
/// zeros.
struct alignas(64) TensorWords {
  std::atomic<std::uint64_t> generation;  ///< the tensor that these words belong to; 0: deleted, leases remain valid
  std::atomic<std::uint64_t> begun;
  std::atomic<std::uint64_t> done;
  std::atomic<std::uint32_t> sealed;   ///< whether there will be no more writes
  std::atomic<std::uint32_t> wake;     ///< a futex, which changes with `done` if the host writes it
  std::atomic<std::uint32_t> waiters;  ///< number of threads that sleep on the futex
};
static_assert(sizeof(TensorWords) == 64 && std::atomic<std::uint64_t>::is_always_lock_free);

/// The location of a tensor's bytes.
struct Place {
  std::uint64_t chunk = 0;  ///< number of a chunk, never reused; 0: no bytes and no location
  std::size_t offset = 0;
  std::size_t bytes = 0;  ///< bytes occupied, possibly more than requested
};

/// A daemon's description of a tensor.
struct Description {
  std::string name;
  std::uint64_t generation = 0;  ///< unique within one daemon run; distinguishes tensors that share a name over time
  Layout layout = {};
  std::size_t bytes = 0;  ///< size of the elements
  Place place = {};
  std::uint64_t slot = 0;  ///< slot of its words on the board
  std::uint64_t leases = 0;
  bool pinned = false, sealed = false;
  std::uint64_t created_ms = 0;  ///< Unix time
  std::uint64_t expires_ms = 0;  ///< Unix time at which the name is deleted; 0: never
};

struct CreateOptions {
  bool pinned = false;                     ///< never evicted
  bool evict = false;                      ///< if there is no room, evict other tensors
  std::optional<double> ttl_seconds = {};  ///< time after which the name is deleted, counted from when it was assigned
  bool replace = false;  ///< for stage(): the commit deletes the tensor that has the name at that time
};
/// Throws BadInput unless the time to live is above 0 and at most 1e9 seconds.
FEEDRATE_EXPORT void check_ttl(const CreateOptions& options);

}  // namespace feedrate::tensors
