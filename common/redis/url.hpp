#pragma once
#include <string>
#include <vector>

namespace feedrate::redis {

/// A server's address, from a URL as RFC 3986 and redis-py have it: redis://[[user][:password]@]host[:port][/db] or
/// unix://[[user][:password]@]/path, with ?db=, ?username= and ?password= in their places. Names and paths are
/// percent-decoded; an IPv6 address stands in brackets. Of a Redis Cluster several servers can be named,
/// host[:port],host[:port]: one that answers tells of the others.
struct Endpoint {
  std::string host, path, user, password;
  int port = 6379;
  int database = 0;
};
/// Of a URL that names one server. Throws BadInput naming `--redis`.
Endpoint parse_url(const std::string& url);
/// A URL for each server that this one names.
std::vector<std::string> servers_of(const std::string& url);
/// The URL with its one server replaced; an empty host: with its port alone.
std::string with_server(const std::string& url, const std::string& host, int port);
/// The URL without user and password, for messages and rows. Anything else stays as it is.
std::string without_password(const std::string& url);
/// Overwrites them where they lie: in a process's arguments, which all users of the machine see.
void hide_password(char* url);

}  // namespace feedrate::redis
