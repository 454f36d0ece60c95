#include "kernels/workload_of.hpp"

namespace feedrate {
namespace {

/// A template for your own workload: copy this file, rename the struct and kName, and change the arithmetic in
/// operator() and reference(). No other file needs to change; the next build finds the new file.
///
/// This workload multiplies every 32-bit word of the payload by three, modulo 2^32.
struct Scale {
  static constexpr auto kName = "scale";
  static constexpr auto kDescription =
      "every 32-bit word times three; template to copy; payload: a multiple of 16 bytes";
  static constexpr std::uint32_t kFactor = 3;

  /// Whether a message of `bytes` bytes can be processed. This workload needs whole pieces of 16 bytes.
  FEEDRATE_HD static bool accepts(std::size_t bytes) { return bytes % sizeof(Vec16) == 0; }
  /// Size of the result in bytes.
  FEEDRATE_HD static std::size_t result_bytes(std::size_t payload) { return payload; }
  /// The reason why a sweep cannot use this payload size; empty if it can.
  static std::string why_unsupported(std::size_t payload) {
    return accepts(payload) ? "" : "scale needs a multiple of 16 bytes";
  }

  /// Processes the message with all threads of `group`. Each thread takes pieces of 16 bytes and returns the sum of the
  /// 32-bit words that it wrote; the total of these sums becomes the result's checksum.
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

  /// Computes the same result in plain code; the host checks every result against it. It shares no code with
  /// operator(), so that a mistake in one does not hide in the other.
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
