#include <cmath>

#include "kernels/workload_of.hpp"

namespace feedrate {
namespace {

/// Applies x ← a·x + b repeatedly to every float of the payload. `flops_per_byte` sets the arithmetic intensity, from
/// bus-bound to SM-bound. Fused multiply-adds round once, both on the GPU and with std::fma, so the CPU's reference
/// agrees bit for bit.
///
/// With a = -1 and b alternating between 3 and 3 + 2^-18, two steps add 2^-18. Floats in [1, 2) stay within [1, 2.25],
/// and different payloads have different results however long the chain is (a contracting map would converge to the
/// same value for all). `a` and `b` are not compile-time constants, because the compiler would then reduce the steps to
/// additions.
struct FmaChain {
  static constexpr auto kName = "fma_chain";
  static constexpr auto kDescription =
      "a chain of fused multiply-adds on every float; --flops-per-byte sets its length";

  struct Options {
    double flops_per_byte = 1;
  };
  static const Axes<Options>& axes() {
    static const auto kAxes = Axes<Options>().number("flops-per-byte", &Options::flops_per_byte, {0.5, 65536},
                                                     "floating-point operations per payload byte");
    return kAxes;
  }

  explicit FmaChain(const Options& options)
      : steps(static_cast<unsigned>(std::lround(options.flops_per_byte * sizeof(float) / 2))) {}

  unsigned steps;
  float a = -1, even = 3, odd = 3 + 0x1p-18f;

  FEEDRATE_HD static bool accepts(std::size_t bytes) { return bytes % 4 == 0; }
  FEEDRATE_HD static std::size_t result_bytes(std::size_t payload) { return payload; }
  static std::string why_unsupported(std::size_t payload) {
    return accepts(payload) ? "" : "fma_chain needs a multiple of 4 bytes";
  }

  template <class Group>
  FEEDRATE_HD std::uint32_t operator()(const Group& group, const Vec16* in, std::size_t bytes, Vec16* out) const {
    std::uint32_t sum = 0;
    map_pieces(
        group, (bytes + 15) / 16, [&](std::size_t i) { return in[i]; },
        [&](std::size_t i, Vec16 piece) {
          for (auto& word : piece.word) word = to_bits(chain(to_float(word)));
          sum += trim_and_sum(piece, i, bytes);
          out[i] = piece;
        });
    return sum;
  }

  static void shape(std::byte* payload, std::size_t bytes) { make_unit_floats(payload, bytes); }

  void reference(const std::byte* payload, std::size_t bytes, std::byte* result) const {
    for (std::size_t at = 0; at < bytes; at += sizeof(float)) {
      float x = 0;
      std::memcpy(&x, payload + at, sizeof x);
      x = expected(x);
      std::memcpy(result + at, &x, sizeof x);
    }
  }

 private:
  /// The value after all steps. For floats in [1, 2) it needs no loop: each step is exact, except for one rounding when
  /// the value passes 2. What is added from then on is an even multiple of the last place, so a tie is rounded to even
  /// in the same direction if the whole sum is rounded once instead.
  float expected(float x) const {
    if (!(x >= 1 && x < 2)) return chain(x);
    const double sum = double{x} + (steps / 2) * (double{odd} - double{even});
    const auto rounded = static_cast<float>(sum);
    return steps % 2 == 0 ? rounded : even - rounded;
  }

  FEEDRATE_HD float chain(float x) const {
    for (unsigned s = 0; s < steps; ++s) x = fmaf(a, x, s % 2 == 0 ? even : odd);
    return x;
  }
};

const WorkloadRegistration<FmaChain> registered;

}  // namespace
}  // namespace feedrate
