#pragma once
#include <cstddef>
#include <cstdint>

#include "common/hash.hpp"
#include "kernels/storage/lanes.hpp"

/// A set-associative cache of pages in device memory, whose entries count their users. One word per entry holds
/// everything that changes, so each step is one atomic operation and no lock exists.
namespace feedrate::storage {

/// The word of an entry: the page's number plus 1 (bits 63:18; 0: never used), a state (17:16), and the number of users
/// (15:0).
struct CacheEntry {
  static constexpr unsigned kTagShift = 18, kStateShift = 16;
  static constexpr std::uint64_t kUsers = (1u << kStateShift) - 1;
  enum class State : std::uint64_t { empty = 0, loading = 1, ready = 2, failed = 3 };

  std::uint64_t word = 0;

  FEEDRATE_HD std::uint64_t users() const { return word & kUsers; }
  FEEDRATE_HD State state() const { return static_cast<State>(word >> kStateShift & 3); }
  FEEDRATE_HD bool holds(std::uint64_t page) const { return word >> kTagShift == page + 1; }
  /// A page that one thread has begun to load.
  static FEEDRATE_HD std::uint64_t loading(std::uint64_t page) {
    return (page + 1) << kTagShift | static_cast<std::uint64_t>(State::loading) << kStateShift | 1;
  }
};

/// Result of looking a page up.
enum class Lookup {
  hit,      ///< the page is ready
  load,     ///< the caller must load the page, and then call loaded()
  loading,  ///< another thread loads it: wait with state_of()
  full      ///< all entries of the set are in use; release pages and try again
};

/// Two threads that miss the same page at the same time may each load it, into two entries; both are valid.
struct PageCache {
  std::uint64_t* entries = nullptr;  ///< sets × ways, zeroed
  std::byte* pages = nullptr;        ///< one page per entry
  std::uint32_t sets = 0, ways = 0, page_bytes = 0;

  /// Looks a page up and takes a reference to its `entry`, unless the result is `full`.
  FEEDRATE_HD Lookup acquire(std::uint64_t page, std::uint32_t& entry) const {
    const std::uint64_t hash = mix64(page);
    const std::uint32_t first = static_cast<std::uint32_t>(hash % sets) * ways;
    for (std::uint32_t i = first; i < first + ways; ++i) {
      CacheEntry found{DeviceWords::peek(entries[i])};
      while (found.holds(page) && found.state() != CacheEntry::State::failed && found.users() < CacheEntry::kUsers) {
        if (!DeviceWords::replace(entries[i], found.word, found.word + 1)) continue;
        entry = i;
        return found.state() == CacheEntry::State::ready ? Lookup::hit : Lookup::loading;
      }
    }
    // Fills an entry that holds no page or, if there is none, replaces a random page that nobody uses.
    const auto start = static_cast<std::uint32_t>(hash >> 32);
    for (const bool replaces : {false, true}) {
      for (std::uint32_t k = 0; k < ways; ++k) {
        const std::uint32_t i = first + (start + k) % ways;
        CacheEntry found{DeviceWords::peek(entries[i])};
        const bool vacant = found.state() == CacheEntry::State::empty || found.state() == CacheEntry::State::failed;
        if (found.users() != 0 || (!vacant && !replaces)) continue;
        if (!DeviceWords::replace(entries[i], found.word, CacheEntry::loading(page))) continue;
        entry = i;
        return Lookup::load;
      }
    }
    return Lookup::full;
  }
  /// Announces that the page is in place, or that it could not be loaded.
  FEEDRATE_HD void loaded(std::uint32_t entry, bool ok) const {
    constexpr std::uint64_t kStep = std::uint64_t{1} << CacheEntry::kStateShift;
    DeviceWords::add(entries[entry], ok ? kStep : 2 * kStep);
  }
  FEEDRATE_HD CacheEntry::State state_of(std::uint32_t entry) const {
    return CacheEntry{DeviceWords::load(entries[entry])}.state();
  }
  /// Drops a reference.
  FEEDRATE_HD void release(std::uint32_t entry) const { DeviceWords::add(entries[entry], ~std::uint64_t{0}); }
  FEEDRATE_HD std::byte* page(std::uint32_t entry) const { return pages + std::size_t{entry} * page_bytes; }
};

}  // namespace feedrate::storage
