#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "libraries/tensors/memory.hpp"
#include "libraries/tensors/tensor.hpp"

namespace feedrate::tensors {

/// Allocates pieces of chunks. Small pieces lie side by side in shared chunks: a piece goes into the smallest gap that
/// holds it (best fit, Knuth's TAOCP 2.5), and adjacent gaps are merged. A large piece has its own chunk. All allocated
/// memory is zero.
class Arena {
 public:
  struct Sizes {
    std::size_t shared = std::size_t{32} << 20;    ///< size of a chunk for small pieces
    std::size_t max_small = std::size_t{4} << 20;  ///< size limit of small pieces; a larger piece has its own chunk
  };
  /// Whether another process maps a chunk; if so, destroying the chunk would not free its memory.
  using IsMapped = std::function<bool(std::uint64_t chunk)>;

  /// `limit`: bytes of all chunks together.
  Arena(ChunkMemory& memory, std::size_t limit, IsMapped is_mapped)
      : Arena(memory, limit, std::move(is_mapped), Sizes{}) {}
  Arena(ChunkMemory& memory, std::size_t limit, IsMapped is_mapped, Sizes sizes)
      : memory_(memory), limit_(limit), is_mapped_(std::move(is_mapped)), sizes_(sizes) {}

  /// Allocates a piece. Throws OutOfMemory if the limit or the system's memory is exhausted.
  Place take(std::size_t bytes);
  /// Zeroes and frees a piece.
  void give_back(const Place& place);
  /// Frees empty shared chunks, but keeps chunks that another process maps; the next small pieces reuse them. With
  /// `keep_one` it also keeps one chunk, so that alternating creates and deletes do not allocate and free a chunk each
  /// time.
  void trim(bool keep_one = true);

  const Chunk& chunk(std::uint64_t number) const { return *chunks_.at(number).memory; }
  bool has(std::uint64_t number) const { return chunks_.contains(number); }
  bool is_shared(std::uint64_t number) const { return chunks_.at(number).shared; }
  std::size_t chunks() const { return chunks_.size(); }
  std::size_t reserved() const { return reserved_; }  ///< total bytes of chunks
  std::size_t taken() const { return taken_; }        ///< total bytes of allocated pieces
  std::size_t limit() const { return limit_; }

 private:
  struct Owned {
    std::unique_ptr<Chunk> memory;
    bool shared = false;
    std::size_t taken = 0;
    std::map<std::size_t, std::size_t> gaps = {};  // bytes by offset
  };
  struct Gap {
    std::size_t bytes;
    std::uint64_t chunk;
    std::size_t offset;
    auto operator<=>(const Gap&) const = default;  // NOLINT(modernize-use-nullptr): a false report of clang-tidy 14
  };
  std::size_t left() const { return limit_ - reserved_; }
  std::uint64_t add_chunk(std::size_t bytes, bool shared);
  void add_gap(std::uint64_t number, std::size_t offset, std::size_t bytes);
  void drop_gap(std::uint64_t number, std::size_t offset, std::size_t bytes);
  void drop_chunk(std::uint64_t number);

  ChunkMemory& memory_;
  std::size_t limit_;
  IsMapped is_mapped_;
  Sizes sizes_;
  std::uint64_t last_ = 0;
  std::size_t reserved_ = 0, taken_ = 0;
  std::map<std::uint64_t, Owned> chunks_;
  std::set<Gap> by_size_;
};

}  // namespace feedrate::tensors
