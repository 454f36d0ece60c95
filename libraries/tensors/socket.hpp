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

/// Unix sockets of packets (SOCK_SEQPACKET), which keep their bounds and may carry descriptors.
namespace feedrate::tensors {

inline constexpr std::size_t kMostPacketBytes = std::size_t{64} << 10;
inline constexpr std::size_t kPacketDescriptors = 32;  ///< the most that a packet carries; further ones are left out

/// Made once and used for many: its memory is a packet's most.
struct Packet {
  std::string_view text;  ///< in `bytes`
  std::vector<Descriptor> descriptors;
  std::unique_ptr<char[]> bytes = std::make_unique_for_overwrite<char[]>(kMostPacketBytes);
};

/// Listens at a path. What is left there of a process that died is replaced; throws BadInput where one listens, or
/// where no socket can be. With a `group`, its members may connect, too.
Descriptor listen_at(const std::string& path, std::optional<gid_t> group);
/// Throws Unreachable; also where somebody else may listen than whom the path is from.
Descriptor connect_to(const std::string& path);

enum class Sent { yes, later, gone };
/// Sends a packet if the socket takes it now, or within `wait`.
Sent send_packet(int socket, std::string_view text, std::span<const int> descriptors,
                 std::chrono::milliseconds wait = {});

enum class Received { packet, nothing, gone, too_long };
/// What has arrived. `most_descriptors` of a packet are taken, the others closed.
Received receive_packet(int socket, Packet& packet, std::size_t most_descriptors);
/// The same, but waits so long for it; `nothing` after that.
Received await_packet(int socket, Packet& packet, std::size_t most_descriptors, std::chrono::milliseconds wait);

/// How long one looks again and again for what is expected, before one sleeps: to be woken takes longer than most
/// answers. Nothing on few cores, where the other side may need this very core.
std::chrono::microseconds attention();

/// Who is at the other end, as the kernel says.
struct Peer {
  pid_t pid = 0;  ///< 0: in a pid namespace that this process does not see
  uid_t user = 0;
  std::vector<gid_t> groups;
  Descriptor process;  ///< becomes readable when it has ended; none where the kernel gives none
};
/// Throws Failure.
Peer peer_of(int socket);

}  // namespace feedrate::tensors
