#include "kernels/workload_of.hpp"

namespace feedrate {
namespace {

/// The template for a workload of your own: copy this file, give the struct and kName names of their own, and change
/// the arithmetic in operator() and in reference(). Nothing else needs to know of it; the next build finds the file.
///
/// Every 32-bit word of the payload times three, modulo 2^32.
struct Scale {
  static constexpr auto kName = "scale";
  static constexpr auto kDescription = "every 32-bit word times three; the template to copy; payload a multiple of 16";
  static constexpr std::uint32_t kFactor = 3;

  /// Whether a message of so many bytes can be worked on. Here: whole pieces, so that none needs to be cut.
  FEEDRATE_HD static bool accepts(std::size_t bytes) { return bytes % sizeof(Vec16) == 0; }
  /// How long its result is.
  FEEDRATE_HD static std::size_t result_bytes(std::size_t payload) { return payload; }
  /// Why a sweep can't have this payload; empty when it can.
  static std::string refuse(std::size_t payload) {
    return accepts(payload) ? "" : "scale needs a multiple of 16 bytes";
  }

  /// The work, by all threads of `group` together: each takes pieces of 16 bytes and returns the sum of the 32-bit
  /// words that it wrote, which becomes the result's checksum.
  template <class Group>
  FEEDRATE_HD std::uint32_t operator()(const Group& group, const Vec16* in, std::size_t bytes, Vec16* out) const {
    std::uint32_t sum = 0;
    const auto load = [&](std::size_t i) { return in[i]; };
    map_pieces(group, bytes / sizeof(Vec16), load, [&](std::size_t i, Vec16 piece) {
      for (auto& word : piece.word) sum += word *= kFactor;
      out[i] = piece;
    });
    return sum;
  }

  /// The same in plain code, for the host to check every result by: written apart from operator(), so that one mistake
  /// does not hide in both.
  static void reference(const std::byte* payload, std::size_t bytes, std::byte* result) {
    for (std::size_t at = 0; at < bytes; at += sizeof(std::uint32_t)) {
      std::uint32_t word = 0;
      std::memcpy(&word, payload + at, sizeof word);
      word *= kFactor;
      std::memcpy(result + at, &word, sizeof word);
    }
  }
};

const WorkloadRegistration<Scale> registered;

}  // namespace
}  // namespace feedrate
