#include "kernels/workload_of.hpp"

namespace feedrate {
namespace {

/// Every 32-bit word of the payload plus one (a last, shorter one counts as padded with zeros and is cut again):
/// next to no arithmetic, so that what is measured is the way there and back.
struct Echo {
  static constexpr auto kName = "echo";
  static constexpr auto kDescription = "every 32-bit word plus one, with checksum";

  explicit Echo(const WorkloadOptions&) {}

  FEEDRATE_HD static bool accepts(std::size_t) { return true; }
  FEEDRATE_HD static std::size_t result_bytes(std::size_t payload) { return payload; }
  static std::string refuse(std::size_t) { return ""; }

  template <class Group>
  FEEDRATE_HD std::uint32_t operator()(const Group& group, const Vec16* in, std::size_t bytes, Vec16* out) const {
    std::uint32_t sum = 0;
    for_each_piece(group, (bytes + 15) / 16, [&](std::size_t i) {
      Vec16 piece = in[i];
      for (auto& word : piece.word) ++word;
      sum += trim_and_sum(piece, i, bytes);
      out[i] = piece;
    });
    return sum;
  }

  static void reference(const std::byte* payload, std::size_t bytes, std::byte* result) {
    for (std::size_t at = 0; at < bytes; at += 4) {
      const std::size_t n = bytes - at < 4 ? bytes - at : 4;
      std::uint32_t word = 0;
      std::memcpy(&word, payload + at, n);
      ++word;
      std::memcpy(result + at, &word, n);
    }
  }

  /// The reference and the comparison in one pass, without a copy: verification must outrun the fastest queue.
  static bool matches(std::uint64_t word, std::size_t bytes, const Header& header, const std::byte* result) {
    constexpr std::uint64_t kLow = 0xFFFF'FFFFull;
    std::uint64_t wrong = 0, sum = 0;
    const std::size_t words = bytes / 8;
    for (std::size_t i = 0; i < words; ++i, word += kStep) {
      const std::uint64_t low = (word + 1) & kLow, high = ((word >> 32) + 1) & kLow;
      std::uint64_t got = 0;
      std::memcpy(&got, result + 8 * i, 8);
      wrong |= got ^ (low | high << 32);
      sum += low + high;
    }
    const std::size_t rest = bytes % 8;
    std::byte tail[8] = {}, expected[8] = {};
    fill_words(word, tail, rest);
    reference(tail, rest, expected);
    wrong |= static_cast<std::uint64_t>(std::memcmp(expected, result + 8 * words, rest) != 0);
    sum += checksum_of(expected, rest);
    return wrong == 0 && static_cast<std::uint32_t>(sum) == header.checksum;
  }
};

const WorkloadRegistration<Echo> registered;

}  // namespace
}  // namespace feedrate
