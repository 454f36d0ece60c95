#include "kernels/workload_of.hpp"

namespace feedrate {
namespace {

/// A message contains two float arrays of equal length, one after the other; the result is their sum. There are two
/// input bytes per output byte, and one IEEE addition per element, so the CPU's reference agrees bit for bit.
struct VecAdd {
  static constexpr auto kName = "vecadd";
  static constexpr auto kDescription = "sum of the payload's two float arrays; the payload is a multiple of 32 bytes";

  FEEDRATE_HD static bool accepts(std::size_t bytes) { return bytes % 32 == 0; }
  FEEDRATE_HD static std::size_t result_bytes(std::size_t payload) { return payload / 2; }
  static std::string why_unsupported(std::size_t payload) {
    return accepts(payload) && payload != 0 ? "" : "vecadd needs a multiple of 32 bytes";
  }

  template <class Group>
  FEEDRATE_HD std::uint32_t operator()(const Group& group, const Vec16* in, std::size_t bytes, Vec16* out) const {
    const std::size_t pieces = bytes / 32;
    std::uint32_t sum = 0;
    struct Pair {
      Vec16 a, b;
    };
    const auto load = [&](std::size_t i) { return Pair{in[i], in[pieces + i]}; };
    map_pieces(group, pieces, load, [&](std::size_t i, const Pair& pair) {
      const auto& [a, b] = pair;
      Vec16 c;
      for (unsigned w = 0; w < 4; ++w) c.word[w] = to_bits(to_float(a.word[w]) + to_float(b.word[w]));
      sum += c.word[0] + c.word[1] + c.word[2] + c.word[3];
      out[i] = c;
    });
    return sum;
  }

  /// Makes the floats finite: each word of the payload becomes a value in [1, 2).
  static void shape(std::byte* payload, std::size_t bytes) { make_unit_floats(payload, bytes); }

  static void reference(const std::byte* payload, std::size_t bytes, std::byte* result) {
    for (std::size_t at = 0; at < bytes / 2; at += sizeof(float)) {
      float a = 0, b = 0;
      std::memcpy(&a, payload + at, sizeof a);
      std::memcpy(&b, payload + bytes / 2 + at, sizeof b);
      const float c = a + b;
      std::memcpy(result + at, &c, sizeof c);
    }
  }
};

const WorkloadRegistration<VecAdd> registered;

}  // namespace
}  // namespace feedrate
