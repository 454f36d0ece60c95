#include "kernels/workload_of.hpp"

namespace feedrate {
namespace {

/// Adds one to every 32-bit word of the payload. A shorter last word is treated as padded with zeros, and its result is
/// truncated. There is almost no arithmetic, so this workload measures the transport in both directions.
struct Echo {
  static constexpr auto kName = "echo";
  static constexpr auto kDescription = "adds one to every 32-bit word, with checksum";

  FEEDRATE_HD static bool accepts(std::size_t) { return true; }
  FEEDRATE_HD static std::size_t result_bytes(std::size_t payload) { return payload; }
  static std::string why_unsupported(std::size_t) { return ""; }

  template <class Group>
  FEEDRATE_HD std::uint32_t operator()(const Group& group, const Vec16* in, std::size_t bytes, Vec16* out) const {
    std::uint32_t sum = 0;
    map_pieces(
        group, (bytes + 15) / 16, [&](std::size_t i) { return in[i]; },
        [&](std::size_t i, Vec16 piece) {
          for (auto& word : piece.word) ++word;
          sum += trim_and_sum(piece, i, bytes);
          out[i] = piece;
        });
    return sum;
  }

  static void reference(const std::byte* payload, std::size_t bytes, std::byte* result) {
    for (std::size_t at = 0; at < bytes; at += sizeof(std::uint32_t)) {
      const std::size_t here = std::min(sizeof(std::uint32_t), bytes - at);
      std::uint32_t word = 0;
      std::memcpy(&word, payload + at, here);
      ++word;
      std::memcpy(result + at, &word, here);
    }
  }
  /// Compares millions of results per second, several at a time; otherwise checking would be the bottleneck.
  static Checked check(std::uint64_t seed, std::size_t payload, ConstMessages results, std::uint64_t* ids) {
    return fastest_passes().check_echoes(seed, payload, results, ids);
  }
};

const WorkloadRegistration<Echo> registered;

}  // namespace
}  // namespace feedrate
