#include "common/socket_folder.hpp"

#include <fmt/format.h>
#include <sys/un.h>

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

}  // namespace feedrate
