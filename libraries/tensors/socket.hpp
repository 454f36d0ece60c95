#pragma once
#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libraries/tensors/memory.hpp"

/// Unix sockets for packets (SOCK_SEQPACKET), which keep their boundaries and may carry descriptors.
namespace feedrate::tensors {

inline constexpr std::size_t kMaxPacketBytes = std::size_t{64} << 10;
inline constexpr std::size_t kPacketDescriptors = 32;  ///< maximum per packet; further descriptors are not sent

/// A buffer of the maximum packet size, created once and reused for many packets.
struct Packet {
  std::string_view text;  ///< in `bytes`
  std::vector<Descriptor> descriptors;
  std::unique_ptr<char[]> bytes = std::make_unique_for_overwrite<char[]>(kMaxPacketBytes);
};

/// Listens at a path. Replaces the socket of a process that died. Throws BadInput if another process listens there, or
/// if no socket can be created. With a `group`, its members may connect as well.
Descriptor listen_at(const std::string& path, std::optional<gid_t> group);
/// Throws Unreachable if no process answers, or if the listener is not a trusted user.
Descriptor connect_to(const std::string& path);

enum class Sent { yes, later, gone };
/// Sends a packet if the socket accepts it now or within `wait`.
Sent send_packet(int socket, std::string_view text, std::span<const int> descriptors,
                 std::chrono::milliseconds wait = {});

enum class Received { packet, nothing, gone, too_long };
/// Receives a packet that has arrived. Keeps up to `max_descriptors` of its descriptors and closes the others.
Received receive_packet(int socket, Packet& packet, std::size_t max_descriptors);
/// The same, but waits up to `wait` for a packet; returns `nothing` if none arrives.
Received await_packet(int socket, Packet& packet, std::size_t max_descriptors, std::chrono::milliseconds wait);

/// How long to poll for an expected packet before sleeping, because a wake-up takes longer than most answers. Zero if
/// there are few cores, because the other side may need this core.
std::chrono::microseconds attention();

/// The process at the other end, as reported by the kernel.
struct Peer {
  pid_t pid = 0;  ///< 0: in a pid namespace that this process cannot see
  uid_t user = 0;
  std::vector<gid_t> groups;
  Descriptor process;  ///< a pidfd, readable once the process has ended; empty if the kernel provides none
};
/// Throws Failure.
Peer peer_of(int socket);

}  // namespace feedrate::tensors
