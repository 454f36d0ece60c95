#include "common/socket_folder.hpp"

#include <fmt/format.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <system_error>

#include "common/error.hpp"

namespace feedrate {

SocketFolder::SocketFolder() {
  constexpr std::string_view kName = "/feedrate-XXXXXX";
  constexpr std::size_t kLongestSocket = 1 + 16;  // a slash and the name
  constexpr std::size_t kLongest = sizeof sockaddr_un{}.sun_path - 1 - kName.size() - kLongestSocket;
  const char* given = std::getenv("TMPDIR");
  const std::string folder = given != nullptr && *given != '\0' ? given : "/tmp";
  if (folder.size() > kLongest) {
    throw BadInput("$TMPDIR", folder,
                   fmt::format("a path of at most {} bytes, so that Unix sockets fit in it", kLongest));
  }
  std::string path = folder + std::string(kName);
  if (mkdtemp(path.data()) == nullptr) {
    throw BadInput("$TMPDIR", folder, fmt::format("a writable folder ({})", std::strerror(errno)));
  }
  path_ = path;
}

SocketFolder::~SocketFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

bool listens(const std::filesystem::path& socket, int type) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket.native().size() >= sizeof address.sun_path) return false;
  std::memcpy(address.sun_path, socket.c_str(), socket.native().size());
  const int client = ::socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (client < 0) return false;
  const int result = connect(client, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  const bool found = result == 0 || errno == EAGAIN;  // EAGAIN: its backlog is full
  close(client);
  return found;
}

}  // namespace feedrate
