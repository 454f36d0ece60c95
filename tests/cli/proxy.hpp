#pragma once
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <atomic>

#include "tests/cli/feedrate_process.hpp"

namespace feedrate::cli_test {

/// A network between a server's socket and the proxy's own socket: it forwards data promptly, late or not at all.
class Proxy {
 public:
  explicit Proxy(std::string server) : server_(std::move(server)) {
    listener_ = socket(AF_UNIX, SOCK_STREAM, 0);
    const sockaddr_un address = address_of(path());
    if (bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        listen(listener_, 64) != 0) {
      throw std::runtime_error("the proxy cannot listen on " + path());
    }
    accepting_ = std::jthread([this](const std::stop_token& stop) { accept_all(stop); });
  }
  Proxy(const Proxy&) = delete;
  ~Proxy() {
    accepting_.request_stop();
    accepting_.join();
    for (auto& connection : connections_) connection.request_stop();
    connections_.clear();
    close(listener_);
  }
  std::string path() const { return folder_ / "p"; }
  std::string url() const { return "unix://" + path(); }

  /// Delays every further chunk of data by `seconds`.
  void delay(double seconds) { delay_ = seconds; }
  /// Keeps current connections open but forwards nothing more on them; new connections work normally.
  void stall() { ++stalled_; }
  /// Cuts the current connections.
  void cut() { ++cut_; }

 private:
  static sockaddr_un address_of(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    return address;
  }
  void accept_all(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      pollfd waiting{listener_, POLLIN, 0};
      if (poll(&waiting, 1, 20) != 1) continue;
      const int client = accept(listener_, nullptr, nullptr), server = socket(AF_UNIX, SOCK_STREAM, 0);
      const sockaddr_un address = address_of(server_);
      if (connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
        close(client);
        close(server);
        continue;
      }
      connections_.emplace_back(
          [this, client, server, stalled = stalled_.load(), cut = cut_.load()](const std::stop_token& ended) {
            while (!ended.stop_requested() && cut_ == cut) {
              if (stalled_ != stalled) {
                std::this_thread::sleep_for(std::chrono::milliseconds(20));
                continue;
              }
              pollfd both[2] = {{client, POLLIN, 0}, {server, POLLIN, 0}};
              if (poll(both, 2, 20) <= 0) continue;
              if ((both[0].revents != 0 && !pass(client, server)) || (both[1].revents != 0 && !pass(server, client)))
                break;
            }
            close(client);
            close(server);
          });
    }
  }
  bool pass(int from, int to) const {
    std::vector<char> bytes(64 << 10);
    const ssize_t n = recv(from, bytes.data(), bytes.size(), 0);
    if (n <= 0) return false;
    if (delay_ > 0) std::this_thread::sleep_for(Seconds(delay_));
    for (ssize_t sent = 0; sent < n;) {
      const ssize_t now = send(to, bytes.data() + sent, static_cast<std::size_t>(n - sent), MSG_NOSIGNAL);
      if (now <= 0) return false;
      sent += now;
    }
    return true;
  }

  std::string server_;
  TempDir folder_;
  int listener_ = -1;
  std::atomic<double> delay_ = 0;
  std::atomic<unsigned> stalled_ = 0, cut_ = 0;
  std::vector<std::jthread> connections_;
  std::jthread accepting_;
};

}  // namespace feedrate::cli_test
