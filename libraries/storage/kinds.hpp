#pragma once
#include <cstdint>
#include <deque>
#include <mutex>
#include <span>
#include <string>
#include <string_view>

#include "feedrate/storage.hpp"
#include "libraries/storage/plan.hpp"

namespace feedrate::storage {

/// The kinds of a source. Kinds are only ever added. Any thread.
class Kinds {
 public:
  explicit Kinds(std::uint64_t source_bytes) : source_bytes_(source_bytes) {}
  /// Throws BadInput if the kind does not lie within the source, or is inconsistent.
  unsigned add(Kind);
  unsigned find(std::string_view name) const;
  std::uint64_t records(unsigned kind) const;
  /// Where consecutive records lie. Throws BadInput.
  Extent extent(unsigned kind, std::uint64_t first, std::uint64_t count) const;
  /// "record 17 of kind 'images'": the record that contains a byte of an extent; empty for an extent of no kind.
  std::string text(const Extent&, std::uint64_t at) const;

  static constexpr unsigned kNone = ~0u;  ///< of an extent that was given in bytes

 private:
  struct Known {
    Kind kind;
    std::uint64_t records;
  };
  const Known& at(unsigned kind) const;
  std::string name_of(unsigned kind) const;

  std::uint64_t source_bytes_;
  mutable std::mutex mutex_;
  std::deque<Known> known_;  // elements stay where they are
};

}  // namespace feedrate::storage
