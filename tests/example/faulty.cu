#include "kernels/workload_of.hpp"

namespace feedrate {
namespace {

/// Fails as its message requests, to test how a queue reacts: a payload whose first 32-bit word is kDrill + n requests
/// fault n. The result of every other message is its own payload.
struct Faulty {
  static constexpr auto kName = "faulty";
  static constexpr auto kDescription = "fails as the message requests, for tests; otherwise returns the payload";
  static constexpr std::uint32_t kDrill = 0xFA17'0000;
  /// `again`: the second word is the number of earlier deliveries after which the message succeeds. `crash`: an illegal
  /// memory access, after which this process can no longer use the device.
  enum Drill : std::uint32_t { refused = 1, again = 2, crash = 3 };

  FEEDRATE_HD static bool accepts(std::size_t bytes) { return bytes % sizeof(Vec16) == 0; }
  FEEDRATE_HD static std::size_t result_bytes(std::size_t payload) { return payload; }
  static std::string why_unsupported(std::size_t payload) {
    return accepts(payload) ? "" : "faulty needs a multiple of 16 bytes";
  }

  FEEDRATE_HD Fault fault(const Header& header, const std::byte* payload, std::size_t bytes) const {
    if (bytes < sizeof(Vec16)) return Fault::none;
    const auto* word = reinterpret_cast<const std::uint32_t*>(payload);
    if (word[0] == kDrill + Drill::refused) return Fault::refused;
    const std::uint32_t delivered = header.checksum >> 8 & 0xFF;  // number of earlier deliveries, set by the queue
    if (word[0] == kDrill + Drill::again && delivered < word[1]) return Fault::again;
    if (word[0] == kDrill + Drill::crash) {
      const volatile std::uintptr_t nowhere = sizeof(Vec16);  // volatile hides the value from the compiler
      *reinterpret_cast<volatile std::uint32_t*>(nowhere) = 0;
    }
    return Fault::none;
  }

  template <class Group>
  FEEDRATE_HD std::uint32_t operator()(const Group& group, const Vec16* in, std::size_t bytes, Vec16* out) const {
    std::uint32_t sum = 0;
    const auto load = [&](std::size_t i) { return in[i]; };
    map_pieces(group, bytes / sizeof(Vec16), load, [&](std::size_t i, Vec16 piece) {
      for (const auto word : piece.word) sum += word;
      out[i] = piece;
    });
    return sum;
  }
  static void reference(const std::byte* payload, std::size_t bytes, std::byte* result) {
    std::memcpy(result, payload, bytes);
  }
};

const WorkloadRegistration<Faulty> registered;

}  // namespace
}  // namespace feedrate
