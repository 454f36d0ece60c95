#pragma once
#include <cstdint>

#include "common/hash.hpp"
#include "common/message/message.hpp"

/// Contents of a pipeline's items. Each stage applies a map that is affine modulo 2^64 to every 64-bit word, so the
/// host can compute an item's checksum from its id in a few operations, whatever the item's size. The checksum changes
/// if a word is from another item or another stage, or if a stage processed a word twice or not at all.
namespace feedrate {

/// The header before an item's words; it moves with them from buffer to buffer.
struct ItemHeader {
  std::uint64_t id;
  std::uint64_t sum;      ///< in a result: the checksum, to which each block adds its share
  std::uint64_t arrived;  ///< in a result: the number of blocks that have added their share
  std::uint64_t unused[5];
};
static_assert(sizeof(ItemHeader) == 64);

/// Before the first stage, word w of item `id` is `item_base(id) + w * kItemStep`.
inline constexpr std::uint64_t kItemStep = 0x9E37'79B9'7F4A'7C15ull;
inline constexpr std::uint64_t kStageFactor = 0x5851'F42D'4C95'7F2Dull;  // Knuth's MMIX multiplier

FEEDRATE_HD constexpr std::uint64_t item_base(std::uint64_t id) { return mix64(id); }

FEEDRATE_HD constexpr std::uint64_t stage_term(unsigned stage) { return 2 * std::uint64_t{stage} + 1; }

/// Applies a stage's map to one word.
FEEDRATE_HD constexpr std::uint64_t through_stage(std::uint64_t word, unsigned stage, std::uint32_t rounds) {
  const std::uint64_t term = stage_term(stage);
  for (std::uint32_t i = 0; i < rounds; ++i) word = word * kStageFactor + term;
  return word;
}

/// The weight of word w in a checksum, so that the checksum changes if words are swapped.
FEEDRATE_HD constexpr std::uint64_t weight_of(std::uint64_t w) { return 2 * w + 1; }

/// The map x -> factor * x + term, modulo 2^64.
struct Affine {
  std::uint64_t factor = 1, term = 0;

  constexpr std::uint64_t operator()(std::uint64_t x) const { return factor * x + term; }
  /// The composition: first this map, then `next`.
  constexpr Affine then(const Affine& next) const { return {factor * next.factor, next.factor * term + next.term}; }
  constexpr Affine times(std::uint64_t n) const {
    Affine power, square = *this;
    for (; n != 0; n >>= 1, square = square.then(square)) {
      if ((n & 1) != 0) power = power.then(square);
    }
    return power;
  }
  friend bool operator==(const Affine&, const Affine&) = default;
};

/// The map of through_stage, in closed form.
constexpr Affine stage_map(unsigned stage, std::uint32_t rounds) {
  return Affine{kStageFactor, stage_term(stage)}.times(rounds);
}

/// The checksums of items of a given size, by id.
class ItemSums {
 public:
  /// `words`: number of words per item; `map`: the composition of all stages.
  ItemSums(std::uint64_t words, const Affine& map)
      : map_(map),
        weights_(words * words),  // the sum of the weights, which are the odd numbers
        steps_(words == 0 ? 0
                          : 2 * squares(words) + (words % 2 == 0 ? words / 2 * (words - 1) : (words - 1) / 2 * words)) {
  }
  std::uint64_t operator()(std::uint64_t id) const {
    return map_(item_base(id)) * weights_ + map_.factor * kItemStep * steps_;
  }

 private:
  /// The sum of the squares below n, (n - 1) n (2n - 1) / 6. The factors are divided before the product wraps.
  static constexpr std::uint64_t squares(std::uint64_t n) {
    std::uint64_t factors[] = {n - 1, n, 2 * n - 1};
    for (const std::uint64_t divisor : {2, 3}) {
      for (std::uint64_t& factor : factors) {
        if (factor % divisor != 0) continue;
        factor /= divisor;
        break;
      }
    }
    return factors[0] * factors[1] * factors[2];
  }
  Affine map_;
  std::uint64_t weights_, steps_;
};

}  // namespace feedrate
