#include "common/socket_folder.hpp"

#include <fmt/format.h>
#include <sys/un.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <system_error>

#include "common/error.hpp"

namespace feedrate {

SocketFolder::SocketFolder() {
  constexpr std::size_t kLongestName = 16;
  constexpr std::size_t kLongestPath = sizeof sockaddr_un{}.sun_path - 1;
  const char* asked = std::getenv("TMPDIR");
  std::string path = (std::filesystem::path(asked != nullptr && *asked != '\0' ? asked : "/tmp") / "feedrate-XXXXXX");
  const auto refuse = [&](const std::string& allowed) {
    throw BadInput("$TMPDIR", asked != nullptr ? asked : "", allowed);
  };
  if (path.size() + 1 + kLongestName > kLongestPath) {
    refuse(fmt::format("a path of at most {} bytes, since Unix sockets lie there",
                       kLongestPath - kLongestName - std::strlen("//feedrate-XXXXXX")));
  }
  if (mkdtemp(path.data()) == nullptr) refuse(fmt::format("a folder that can be written ({})", std::strerror(errno)));
  path_ = path;
}

SocketFolder::~SocketFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace feedrate
