#include "libraries/tensors/socket.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "common/error.hpp"
#include "common/threads/threads.hpp"
#include "libraries/tensors/errors.hpp"

namespace feedrate::tensors {
namespace {

constexpr int kSoPeerPidfd = 77;  // SO_PEERPIDFD, Linux 6.5

/// `spare`: bytes of the path that must remain unused.
sockaddr_un address_of(const std::string& path, std::size_t spare = 0) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::size_t most = sizeof address.sun_path - 1 - spare;
  if (path.empty() || path.size() > most)
    throw BadInput("--socket", path, fmt::format("a path of 1 to {} bytes", most));
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

Descriptor new_socket() {
  Descriptor made(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!made) throw Failure(fmt::format("socket: {}", std::strerror(errno)));
  return made;
}

/// A user who can write to a folder can listen at any name in it; in a folder like /tmp that is every user. So a store
/// must belong to this user, to root or to the folder's owner. In a user namespace all unmapped users appear as the
/// same user, so this check cannot tell them apart.
void check_listener(const Descriptor& socket, const std::string& path) {
  const uid_t user = peer_of(socket.get()).user;
  if (user == 0 || user == geteuid()) return;
  struct stat folder {};
  const auto slash = path.rfind('/');
  const std::string name = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
  if (stat(name.c_str(), &folder) == 0 && folder.st_uid == user) return;
  throw Unreachable(fmt::format(
      "the store at {} belongs to user {}, who is neither this user, nor root, nor the owner of {}: put its "
      "socket into a folder owned by that user",
      path, user, name));
}

bool connects(const Descriptor& socket, const sockaddr_un& address) {
  return connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

}  // namespace

Descriptor listen_at(const std::string& path, std::optional<gid_t> group) {
  // The socket gets its final name only once it listens, so that a client that finds it can connect.
  const std::string unnamed = path + "~";
  const sockaddr_un named = address_of(path, 1), address = address_of(unnamed);
  const auto reject = [&](const char* what) {
    throw BadInput("--socket", path,
                   fmt::format("a path where a socket can be created ({}: {})", what, std::strerror(errno)));
  };
  // Held until the socket has its name, so that only one of two daemons that find a dead daemon's socket replaces it.
  const Descriptor lock(open((path + ".lock").c_str(), O_CREAT | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock || flock(lock.get(), LOCK_EX) != 0) reject("its lock");
  struct stat found {};
  if (lstat(path.c_str(), &found) == 0) {
    if (!S_ISSOCK(found.st_mode))
      throw BadInput("--socket", path, "a path where no file exists, or a dead daemon's socket");
    if (connects(new_socket(), named)) throw BadInput("--socket", path, "a path where no other daemon listens");
    if (errno != ECONNREFUSED)
      reject("existing socket");  // a socket of another type, or one without permission to connect
  }
  // Left by a daemon that was killed at this point.
  if (lstat(unnamed.c_str(), &found) == 0 && S_ISSOCK(found.st_mode)) unlink(unnamed.c_str());
  Descriptor socket = new_socket();
  if (bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) reject("bind");
  if (group && chown(unnamed.c_str(), static_cast<uid_t>(-1), *group) != 0) reject("its group");
  if (chmod(unnamed.c_str(), group ? 0660 : 0600) != 0) reject("its mode");
  if (listen(socket.get(), SOMAXCONN) != 0) reject("listen");
  if (rename(unnamed.c_str(), path.c_str()) != 0) reject("rename");
  fcntl(socket.get(), F_SETFL, O_NONBLOCK);
  return socket;
}

Descriptor connect_to(const std::string& path) {
  Descriptor socket = new_socket();
  if (!connects(socket, address_of(path))) {
    throw Unreachable(fmt::format("no store answers at {}: {}", path, std::strerror(errno)));
  }
  check_listener(socket, path);
  return socket;
}

Sent send_packet(int socket, std::string_view text, std::span<const int> descriptors, std::chrono::milliseconds wait) {
  iovec part{const_cast<char*>(text.data()), text.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kPacketDescriptors * sizeof(int))> control{};
  if (!descriptors.empty()) {
    const std::size_t bytes = std::min(descriptors.size(), kPacketDescriptors) * sizeof(int);
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(bytes);
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(bytes);
    std::memcpy(CMSG_DATA(header), descriptors.data(), bytes);
  }
  while (sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
    if (errno == EINTR) continue;
    if (errno != EAGAIN && errno != EWOULDBLOCK) return Sent::gone;
    pollfd ready{socket, POLLOUT, 0};
    if (wait.count() == 0 || poll(&ready, 1, static_cast<int>(wait.count())) <= 0) return Sent::later;
    wait = {};
  }
  return Sent::yes;
}

Received receive_packet(int socket, Packet& packet, std::size_t max_descriptors) {
  packet.descriptors.clear();
  iovec part{packet.bytes.get(), kMaxPacketBytes};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kPacketDescriptors * sizeof(int))> control{};
  if (max_descriptors != 0) {
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(std::min(max_descriptors, kPacketDescriptors) * sizeof(int));
  }
  ssize_t bytes = 0;
  // The first ECONNRESET means that the other end did not read everything; packets that it sent before can still be
  // read.
  for (bool reset = false; (bytes = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC)) < 0;) {
    if (errno != EINTR && (errno != ECONNRESET || std::exchange(reset, true))) break;
  }
  if (bytes < 0) return errno == EAGAIN || errno == EWOULDBLOCK ? Received::nothing : Received::gone;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    std::array<int, kPacketDescriptors> found{};
    std::memcpy(found.data(), CMSG_DATA(header), count * sizeof(int));
    for (std::size_t i = 0; i < count; ++i) packet.descriptors.emplace_back(found.at(i));
  }
  if (bytes == 0) return Received::gone;
  if ((message.msg_flags & MSG_TRUNC) != 0) return Received::too_long;
  packet.text = {packet.bytes.get(), static_cast<std::size_t>(bytes)};
  return Received::packet;
}

Received await_packet(int socket, Packet& packet, std::size_t max_descriptors, std::chrono::milliseconds wait) {
  const auto begin = std::chrono::steady_clock::now(), deadline = begin + wait;
  while (true) {
    const Received received = receive_packet(socket, packet, max_descriptors);
    if (received == Received::nothing && std::chrono::steady_clock::now() - begin < attention()) continue;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (received != Received::nothing || left.count() <= 0) return received;
    pollfd ready{socket, POLLIN, 0};
    poll(&ready, 1, static_cast<int>(std::min<std::int64_t>(left.count(), 1'000'000)));
  }
}

std::chrono::microseconds attention() {
  static const bool cores_to_spare = [] {
    cpu_set_t allowed;
    return sched_getaffinity(0, sizeof allowed, &allowed) == 0 && CPU_COUNT(&allowed) > static_cast<int>(kFewCores);
  }();
  return std::chrono::microseconds(cores_to_spare ? 50 : 0);
}

Peer peer_of(int socket) {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) {
    throw Failure(fmt::format("SO_PEERCRED: {}", std::strerror(errno)));
  }
  Peer peer{.pid = credentials.pid, .user = credentials.uid, .groups = {credentials.gid}, .process = {}};
  std::array<gid_t, 256> groups{};
  size = sizeof groups;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, groups.data(), &size) == 0) {
    peer.groups.insert(peer.groups.end(), groups.begin(), groups.begin() + size / sizeof(gid_t));
  }
  int process = -1;
  size = sizeof process;
  if (getsockopt(socket, SOL_SOCKET, kSoPeerPidfd, &process, &size) == 0) {
    peer.process = Descriptor(process);
  } else if (peer.pid != 0) {
    // An older kernel: the process may have ended since, but its pid has not been reused yet.
    peer.process = Descriptor(static_cast<int>(syscall(SYS_pidfd_open, peer.pid, 0)));
  }
  return peer;
}

}  // namespace feedrate::tensors
