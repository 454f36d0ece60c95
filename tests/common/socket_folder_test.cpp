#include "common/socket_folder.hpp"

#include <gtest/gtest.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <vector>

namespace feedrate {
namespace {

/// A listener whose queue of connections has room for one.
int listen_on(const std::filesystem::path& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.native().copy(address.sun_path, sizeof address.sun_path - 1);
  const int listener = socket(AF_UNIX, SOCK_STREAM, 0);
  EXPECT_EQ(bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(listen(listener, 0), 0);
  return listener;
}

TEST(Listens, ClosedListenerIsNotReportedEvenIfItsProcessLives) {
  const SocketFolder folder;
  const auto path = folder / "s";
  EXPECT_FALSE(listens(path));
  const int listener = listen_on(path);
  EXPECT_TRUE(listens(path));
  EXPECT_FALSE(listens(path, SOCK_SEQPACKET)) << "a socket of another type";
  close(listener);
  EXPECT_FALSE(listens(path));
}

TEST(Listens, ListensDoesNotWaitForAProcessThatAcceptsNothing) {
  const SocketFolder folder;
  const int listener = listen_on(folder / "s");
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(listens(folder / "s")) << i << " connections wait";
  close(listener);
}

TEST(Listens, TooLongPathHasNoListener) { EXPECT_FALSE(listens(std::string(200, 'x'))); }

}  // namespace
}  // namespace feedrate
