// The work that a GPU (or, without one, a CPU thread) performs on each message. This file needs no other header.
#include <feedrate/kernel.hpp>

namespace {

/// The sum of a message's 32-bit words.
struct Sum {
  static FEEDRATE_HD bool accepts(std::size_t bytes) { return bytes % sizeof(feedrate::Vec16) == 0; }
  static FEEDRATE_HD std::size_t result_bytes(std::size_t) { return sizeof(std::uint32_t); }
  template <class Group>
  FEEDRATE_HD std::uint32_t operator()(const Group& group, const feedrate::Vec16* in, std::size_t bytes,
                                       feedrate::Vec16* out) const {
    std::uint32_t mine = 0;
    feedrate::map_pieces(
        group, bytes / sizeof(feedrate::Vec16), [&](std::size_t i) { return in[i]; },
        [&](std::size_t, const feedrate::Vec16& piece) {
          for (const std::uint32_t word : piece.word) mine += word;
        });
    const std::uint32_t sum = group.sum(mine);
    if (group.rank() == 0) out[0].word[0] = sum;
    return 0;  // no checksum
  }
};

}  // namespace

std::unique_ptr<feedrate::Kernel> make_sum() { return std::make_unique<feedrate::KernelOf<Sum>>(); }
