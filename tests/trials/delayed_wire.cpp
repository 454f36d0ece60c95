// Runs a server and a client in two network namespaces, connected by a wire that delays each packet by a given time:
//   delayed_wire MICROSECONDS SERVER CLIENT
// SERVER and CLIENT are commands for sh. The server has the address 10.77.0.1, the client 10.77.0.2. When the client
// exits, the server is killed, and this program exits with the client's exit code. Needs /dev/net/tun, and root or
// `unshare -Ur`.
//
// The standard tool is `tc qdisc add dev … root netem delay`, which not every kernel supports. Here each end of the
// wire is a TUN interface, and one thread per direction carries the packets.
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kLargestPacket = 65520;  // allows TCP segments of this size, like segmentation offload
constexpr std::size_t kMaxUnderWay = 4096;

void must(long result, const char* what) {
  if (result < 0) throw std::runtime_error(std::string(what) + ": " + std::strerror(errno));
}

/// Configures a network interface in the namespace of this thread.
struct Interface {
  explicit Interface(const char* name) : control(socket(AF_INET, SOCK_DGRAM, 0)) {
    must(control, "socket");
    std::strncpy(request.ifr_name, name, IFNAMSIZ - 1);
  }
  ~Interface() { close(control); }
  void address(unsigned long what, const char* text) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    inet_pton(AF_INET, text, &address.sin_addr);
    std::memcpy(&request.ifr_addr, &address, sizeof address);
    must(ioctl(control, what, &request), text);
  }
  void up() {
    must(ioctl(control, SIOCGIFFLAGS, &request), "SIOCGIFFLAGS");
    request.ifr_flags |= IFF_UP | IFF_RUNNING;
    must(ioctl(control, SIOCSIFFLAGS, &request), "SIOCSIFFLAGS");
  }
  int control;
  ifreq request{};
};

/// Enters a new network namespace that contains one end of the wire; returns the TUN descriptor of this end.
int enter_namespace(const char* address) {
  must(unshare(CLONE_NEWNET), "unshare: new network namespace");
  Interface("lo").up();
  const int tun = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
  must(tun, "/dev/net/tun");
  Interface wire("wire");
  wire.request.ifr_flags = IFF_TUN | IFF_NO_PI;
  must(ioctl(tun, TUNSETIFF, &wire.request), "TUNSETIFF");
  wire.address(SIOCSIFADDR, address);
  wire.address(SIOCSIFNETMASK, "255.255.255.0");
  wire.request.ifr_mtu = kLargestPacket;
  must(ioctl(wire.control, SIOCSIFMTU, &wire.request), "SIOCSIFMTU");
  wire.request.ifr_qlen = kMaxUnderWay;
  must(ioctl(wire.control, SIOCSIFTXQLEN, &wire.request), "SIOCSIFTXQLEN");
  wire.up();
  return tun;
}

pid_t start(const char* command) {
  const pid_t child = fork();
  must(child, "fork");
  if (child != 0) return child;
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  execl("/bin/sh", "sh", "-c", command, nullptr);
  _exit(127);
}

/// Carries packets from one end to the other forever, in order and with the given delay.
void carry(int from, int to, Clock::duration delay) {
  struct Packet {
    Clock::time_point due;
    std::vector<char> bytes;
  };
  std::deque<Packet> under_way;
  std::vector<char> buffer(kLargestPacket);
  const bool few_cores = std::thread::hardware_concurrency() <= 4;
  while (true) {
    // A thread cannot be woken within microseconds, so this thread polls continuously while packets are under way.
    pollfd ready{from, POLLIN, 0};
    if (under_way.empty()) poll(&ready, 1, -1);
    if (under_way.size() < kMaxUnderWay) {
      const ssize_t n = read(from, buffer.data(), buffer.size());
      if (n > 0) under_way.push_back({Clock::now() + delay, {buffer.begin(), buffer.begin() + n}});
    }
    while (!under_way.empty() && under_way.front().due <= Clock::now()) {
      const auto& bytes = under_way.front().bytes;
      if (write(to, bytes.data(), bytes.size()) < 0 && errno == EAGAIN) break;
      under_way.pop_front();  // after other errors the packet is lost, as on a wire; TCP resends it
    }
    if (few_cores) std::this_thread::yield();
  }
}

}  // namespace

int main(int count, char** words) try {
  if (count != 4) {
    std::fprintf(stderr, "usage: %s MICROSECONDS SERVER CLIENT\n", words[0]);
    return 2;
  }
  const std::chrono::microseconds delay(std::stol(words[1]));
  const int server_end = enter_namespace("10.77.0.1");
  const pid_t server = start(words[2]);
  const int client_end = enter_namespace("10.77.0.2");
  const pid_t client = start(words[3]);
  std::thread(carry, server_end, client_end, delay).detach();
  std::thread(carry, client_end, server_end, delay).detach();
  int status = 0;
  waitpid(client, &status, 0);
  kill(-server, SIGKILL);
  std::_Exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
} catch (const std::exception& e) {
  std::fprintf(stderr, "delayed_wire: %s\n", e.what());
  return 1;
}
