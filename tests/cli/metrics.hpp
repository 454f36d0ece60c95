#pragma once
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "tests/cli/feedrate_process.hpp"

namespace feedrate::cli_test {

/// Response to a GET request, headers and body; empty if nothing listens on the port.
inline std::string get(int port, const std::string& path) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  std::string answer;
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) {
    const std::string request = "GET " + path + " HTTP/1.0\r\n\r\n";
    send(fd, request.data(), request.size(), MSG_NOSIGNAL);
    char buffer[4096];
    for (ssize_t n = 0; (n = recv(fd, buffer, sizeof buffer, 0)) > 0;)
      answer.append(buffer, static_cast<std::size_t>(n));
  }
  close(fd);
  return answer;
}

/// Value of a metric with any labels; -1 if the metric is missing.
inline double value_of(const std::string& metrics, const std::string& name) {
  std::istringstream lines(metrics);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(name + "{")) return std::stod(line.substr(line.rfind(' ') + 1));
  }
  return -1;
}

/// Whether this build can serve metrics.
inline bool serves_metrics() { return fs::exists(fs::path(executable()).parent_path() / "feedrate_metrics.so"); }

}  // namespace feedrate::cli_test
