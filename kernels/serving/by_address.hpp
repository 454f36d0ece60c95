#pragma once
#include "kernels/serving/serve.hpp"

namespace feedrate {

/// The addresses of a payload and of its result, both outside the message and aligned to 16 bytes.
struct Address {
  std::uint64_t in = 0;
  std::uint64_t bytes = 0;  ///< a multiple of 16; otherwise bytes past the end might be read and written
  std::uint64_t out = 0;    ///< may equal `in` if the functor can work in place
  std::uint64_t room = 0;   ///< bytes available at `out`
};

/// Applies F to payloads that messages refer to by address; the message's result is the length of F's result. The
/// sender ensures that the memory exists, is written before the message is sent, and stays allocated. A ring that
/// notifies by counter orders accesses to this memory like accesses to its own slots.
template <class F>
struct ByAddress : F {
  static FEEDRATE_HD bool accepts(std::size_t bytes) { return bytes == sizeof(Address); }
  static FEEDRATE_HD std::size_t result_bytes(std::size_t) { return sizeof(std::uint64_t); }
  FEEDRATE_HD Fault fault(const Header& header, const std::byte* payload, std::size_t) const {
    const auto& at = *reinterpret_cast<const Address*>(payload);
    if (at.bytes % sizeof(Vec16) != 0 || !F::accepts(at.bytes)) return Fault::bad_length;
    if (F::result_bytes(at.bytes) > at.room) return Fault::too_long;
    return fault_of<F>(*this, header, reinterpret_cast<const std::byte*>(at.in), at.bytes);
  }
  template <class Group>
  FEEDRATE_HD std::uint32_t operator()(const Group& group, const Vec16* message, std::size_t, Vec16* result) const {
    const auto at = *reinterpret_cast<const Address*>(message);
    if (group.rank() == 0) *reinterpret_cast<std::uint64_t*>(result) = F::result_bytes(at.bytes);
    return F::operator()(group, reinterpret_cast<const Vec16*>(at.in), at.bytes, reinterpret_cast<Vec16*>(at.out));
  }
};

}  // namespace feedrate
