#include "common/redis/url.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include "common/error.hpp"

namespace feedrate::redis {
namespace {

constexpr auto kAllowedUrls =
    "redis://[user:password@]host[:port][,host[:port]...][/db] or unix://[user:password@]/path; in names write "
    "/ ? # [ ] and % as %2F, %3F …";
constexpr auto kNone = std::string_view::npos;

/// Positions of the parts of a URL: scheme://[user information@]servers[/path][?query][#fragment].
struct Parts {
  std::size_t begin, servers, path, query, end;
};

/// Splits `url`, which must have a scheme.
Parts parts_of(std::string_view url) {
  Parts parts{};
  parts.begin = parts.servers = url.find("://") + 3;
  parts.end = std::min(url.find('#'), url.size());
  parts.query = std::min(url.find('?'), parts.end);
  parts.path = std::min({url.find('/', parts.begin), parts.query, parts.end});
  if (const auto at = url.substr(0, parts.path).rfind('@'); at != kNone && at >= parts.begin) parts.servers = at + 1;
  return parts;
}

/// Ranges of `text` that messages must hide: the user and password, and the query or fragment, for any parameter
/// names. The URL may be malformed: a password may contain a slash or a question mark that should have been
/// escaped.
std::vector<std::pair<std::size_t, std::size_t>> secrets_of(std::string_view text) {
  std::vector<std::pair<std::size_t, std::size_t>> secrets;
  const auto scheme = text.find("://");
  if (scheme == kNone) return secrets;
  const auto begin = scheme + 3, tail = text.find_first_of("?#", begin), all = text.rfind('@');
  const auto in_front = text.substr(0, tail).rfind('@'), at = in_front != kNone ? in_front : all;
  const bool socket = text.substr(begin).starts_with('/');  // unix:///x@y is a path
  if (!socket && at != kNone && at > begin) secrets.emplace_back(begin, std::min(at, tail));
  const bool database =
      tail != kNone && text.substr(tail).starts_with("?db=") && text.find_first_not_of("0123456789", tail + 4) == kNone;
  if (tail != kNone && !database) secrets.emplace_back(tail + 1, text.size());
  return secrets;
}

[[noreturn]] void reject(const std::string& url, const std::string& besides = {}) {
  const auto at = url.find("://") == url.npos ? url.rfind('@') : url.npos;
  throw BadInput("--redis", at == url.npos ? without_password(url) : "***" + url.substr(at), kAllowedUrls + besides);
}

int parse_int(const std::string& url, std::string_view digits, int most) {
  int value = -1;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc{} || end != digits.data() + digits.size() || value < 0 || value > most) reject(url);
  return value;
}

/// Decodes percent escapes: "%2F" is a slash. A % without two hexadecimal digits is kept.
std::string decoded(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned char byte = 0;
    const bool escaped = text[i] == '%' && i + 2 < text.size() &&
                         std::from_chars(&text[i + 1], &text[i + 1] + 2, byte, 16).ptr == &text[i + 1] + 2;
    plain += escaped ? static_cast<char>(byte) : text[i];
    if (escaped) i += 2;
  }
  return plain;
}

/// Parses host[:port] or [IPv6 address][:port].
void parse_server(const std::string& url, std::string_view server, Endpoint& endpoint) {
  std::string_view port;
  if (server.starts_with('[')) {
    const auto close = server.find(']');
    if (close == kNone) reject(url);
    endpoint.host = decoded(server.substr(1, close - 1));
    port = server.substr(close + 1);
    if (!port.empty() && !port.starts_with(':')) reject(url);
  } else {
    const auto colon = std::min(server.find(':'), server.size());
    endpoint.host = decoded(server.substr(0, colon));
    port = server.substr(colon);
  }
  if (endpoint.host.empty()) reject(url);
  if (port.size() > 1) endpoint.port = parse_int(url, port.substr(1), 65535);
}

void parse_query(const std::string& url, std::string_view query, Endpoint& endpoint) {
  while (!query.empty()) {
    const std::string_view one = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(one.size() + 1, query.size()));
    const auto equals = std::min(one.find('='), one.size());
    const std::string_view name = one.substr(0, equals), value = one.substr(std::min(equals + 1, one.size()));
    if (name == "db") {
      endpoint.database = parse_int(url, value, 1 << 20);
    } else if (name == "username") {
      endpoint.user = decoded(value);
    } else if (name == "password") {
      endpoint.password = decoded(value);
    } else {
      reject(url, fmt::format("; after ?, the parameters db, username and password, but not {:?}", name));
    }
  }
}

}  // namespace

Endpoint parse_url(const std::string& url) {
  if (url.starts_with("rediss://")) {
    reject(url, "; this build's hiredis has no TLS: run a TLS proxy such as stunnel next to the worker");
  }
  const bool unix_socket = url.starts_with("unix://");
  if (!unix_socket && !url.starts_with("redis://")) reject(url);
  const Parts parts = parts_of(url);
  const std::string_view text(url);
  if (parts.end != url.size()) reject(url);
  Endpoint endpoint;
  if (parts.servers != parts.begin) {
    const auto login = text.substr(parts.begin, parts.servers - 1 - parts.begin);
    const auto colon = std::min(login.find(':'), login.size());
    endpoint.user = decoded(login.substr(0, colon));
    endpoint.password = decoded(login.substr(std::min(colon + 1, login.size())));
  }
  const auto servers = text.substr(parts.servers, parts.path - parts.servers);
  const auto path = text.substr(parts.path, parts.query - parts.path);
  if (unix_socket) {
    endpoint.path = decoded(path);
    if (!servers.empty() || !path.starts_with('/')) reject(url);
  } else {
    parse_server(url, servers, endpoint);
    if (path.size() > 1) endpoint.database = parse_int(url, path.substr(1), 1 << 20);
  }
  parse_query(url, text.substr(std::min(parts.query + 1, url.size())), endpoint);
  return endpoint;
}

std::string without_password(const std::string& url) {
  std::string shown;
  std::size_t from = 0;
  for (const auto& [begin, end] : secrets_of(url)) {
    shown += url.substr(from, begin - from) + "***";
    from = end;
  }
  return shown + url.substr(from);
}

void hide_password(char* url) {
  for (const auto& [begin, end] : secrets_of(url)) std::fill(url + begin, url + end, '*');
}

std::vector<std::string> servers_of(const std::string& url) {
  if (!url.starts_with("redis://")) return {url};
  const Parts parts = parts_of(url);
  std::vector<std::string> servers;
  for (std::size_t from = parts.servers; from <= parts.path;) {
    const std::size_t to = std::min(url.find(',', from), parts.path);
    servers.push_back(url.substr(0, parts.servers) + url.substr(from, to - from) + url.substr(parts.path));
    from = to + 1;
  }
  return servers;
}

std::string with_server(const std::string& url, const std::string& host, int port) {
  const Parts parts = parts_of(url);
  const std::string name = host.empty() ? parse_url(url).host : host;
  return fmt::format("{}{}:{}{}", url.substr(0, parts.servers),
                     name.find(':') == name.npos ? name : fmt::format("[{}]", name), port, url.substr(parts.path));
}

}  // namespace feedrate::redis
