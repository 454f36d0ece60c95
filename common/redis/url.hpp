#pragma once
#include <string>
#include <vector>

namespace feedrate::redis {

/// A server's address, from a URL in the format of RFC 3986 and redis-py: redis://[[user][:password]@]host[:port][/db]
/// or unix://[[user][:password]@]/path, with ?db=, ?username= and ?password= as alternatives. Names and paths are
/// percent-decoded; an IPv6 address is in brackets. For a Redis Cluster, several servers may be given:
/// host[:port],host[:port]. A server that replies reports the others.
struct Endpoint {
  std::string host, path, user, password;
  int port = 6379;
  int database = 0;
};
/// Parses a URL with a single server. Throws BadInput naming `--redis`.
Endpoint parse_url(const std::string& url);
/// Returns a URL for each server in `url`.
std::vector<std::string> servers_of(const std::string& url);
/// Returns the URL with its single server replaced; if `host` is empty, replaces only the port.
std::string with_server(const std::string& url, const std::string& host, int port);
/// Returns the URL with user and password hidden, for messages and rows. Other text is returned unchanged.
std::string without_password(const std::string& url);
/// Overwrites user and password in place: in a process's arguments, which are visible to all users of the machine.
void hide_password(char* url);

}  // namespace feedrate::redis
