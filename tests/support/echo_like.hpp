#pragma once
#include <cstring>

#include "kernels/workload_of.hpp"

namespace feedrate::test {

/// Base of workloads that echo. They differ in `meddle(id, i, piece)`, which is called with every piece of a message as
/// it passes through; piece 0 is the first. A Derived workload adds kName, kDescription and a constructor.
template <class Derived>
struct EchoLike {
  FEEDRATE_HD static bool accepts(std::size_t) { return true; }
  FEEDRATE_HD static std::size_t result_bytes(std::size_t payload) { return payload; }
  static std::string why_unsupported(std::size_t) { return ""; }
  FEEDRATE_HD void meddle(std::uint64_t /*id*/, std::size_t /*i*/, Vec16& /*piece*/) const {}
  template <class Group>
  FEEDRATE_HD std::uint32_t operator()(const Group& group, const Vec16* in, std::size_t bytes, Vec16* out) const {
    std::uint32_t sum = 0;
    const auto id = (reinterpret_cast<const Header*>(in) - 1)->id;
    map_pieces(
        group, (bytes + 15) / 16, [&](std::size_t i) { return in[i]; },
        [&](std::size_t i, Vec16 piece) {
          static_cast<const Derived*>(this)->meddle(id, i, piece);
          sum += trim_and_sum(piece, i, bytes);
          out[i] = piece;
        });
    return sum;
  }
  static void reference(const std::byte* payload, std::size_t bytes, std::byte* result) {
    std::memcpy(result, payload, bytes);
  }
};

}  // namespace feedrate::test
