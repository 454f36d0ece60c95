#pragma once
#include <cstddef>
#include <cstdint>
#include <type_traits>

/// Marks functions that are compiled for both the host and the GPU.
#ifdef __CUDACC__
#define FEEDRATE_HD __host__ __device__
#else
#define FEEDRATE_HD
#endif

namespace feedrate {

/// The header before every payload: in a ring slot, in device memory or in a Redis element. Little-endian, 16 bytes.
struct Header {
  std::uint64_t id;        ///< top 16 bits: the producer that gets the result; the rest: its sequence number
  std::uint32_t length;    ///< payload bytes; in a failed result kFailed | code, without a payload
  std::uint32_t checksum;  ///< results: sum of the payload's 32-bit words (zero-padded), modulo 2^32; messages: free
                           ///< for the queue's use
};
static_assert(sizeof(Header) == 16);

/// Reason why a message has no result, in the low bits of a failed result's length word.
enum class Fault : std::uint32_t {
  none = 0,
  bad_length = 1,
  too_long = 2,     ///< the message or its result does not fit in its slot
  refused = 3,      ///< the workload rejected its contents
  again = 4,        ///< temporary failure: retried by queues that can retry
  expired = 5,      ///< its deadline had passed when a worker received it
  worker_died = 6,  ///< a worker died on each delivery, up to the maximum
  bad_version = 7,  ///< unknown version of the message format
};
inline constexpr std::uint32_t kFailed = 0x8000'0000u;

/// Payload bytes after the header of a message, a result or a failed result.
constexpr std::size_t payload_bytes(const Header& header) { return (header.length & kFailed) != 0 ? 0 : header.length; }

inline constexpr unsigned kSequenceBits = 48;
inline constexpr std::uint64_t kSequenceMask = (std::uint64_t{1} << kSequenceBits) - 1;
constexpr std::uint64_t message_id(unsigned producer, std::uint64_t sequence) {
  return (static_cast<std::uint64_t>(producer) << kSequenceBits) | (sequence & kSequenceMask);
}
constexpr unsigned producer_of(std::uint64_t id) { return static_cast<unsigned>(id >> kSequenceBits); }
constexpr std::uint64_t sequence_of(std::uint64_t id) { return id & kSequenceMask; }

/// Bytes from one message to the next. Slots and payloads stay 16-byte aligned, for 128-bit accesses on both sides.
FEEDRATE_HD constexpr std::size_t stride_of(std::size_t payload) {
  return (sizeof(Header) + payload + 15) & ~std::size_t{15};
}

/// `count` messages at intervals of `stride` bytes. A non-owning view; the function that returns it defines how long it
/// stays valid.
template <class Byte>
struct BasicMessages {
  Byte* base = nullptr;
  std::size_t stride = 0;
  std::size_t count = 0;

  bool empty() const { return count == 0; }
  auto& header(std::size_t i) const {
    if constexpr (std::is_const_v<Byte>) {
      return *reinterpret_cast<const Header*>(base + i * stride);
    } else {
      return *reinterpret_cast<Header*>(base + i * stride);
    }
  }
  Byte* payload(std::size_t i) const { return base + i * stride + sizeof(Header); }
  BasicMessages first(std::size_t n) const { return {base, stride, n < count ? n : count}; }
  BasicMessages from(std::size_t n) const { return {base + n * stride, stride, count - n}; }
};
using Messages = BasicMessages<std::byte>;
using ConstMessages = BasicMessages<const std::byte>;

}  // namespace feedrate
