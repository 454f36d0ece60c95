#include "common/redis/connection.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "common/clock.hpp"
#include "common/error.hpp"

namespace feedrate::redis {
namespace {

constexpr std::size_t kReadSize = 256 << 10;
constexpr std::size_t kMaxSentKept = 1 << 20;
constexpr timeval kConnectTimeout{5, 0};
constexpr std::uint64_t kReplyTimeoutNs = 5'000'000'000;
constexpr std::uint64_t kIdleNs = 2'000'000;  // after this time, checks whether the server closed the connection

}  // namespace

Connection::Connection(const std::string& url) : input_(kReadSize) {
  const std::vector<std::string> servers = servers_of(url);
  for (std::size_t i = 0; i < servers.size(); ++i) {
    try {
      connect(servers[i]);
      return;
    } catch (const ServerFailure&) {
      if (i + 1 == servers.size()) throw;
    }
  }
}

void Connection::connect(const std::string& url) {
  server_ = url;
  name_ = without_password(url);
  output_.clear();  // commands to an earlier server
  sent_ = unanswered_ = 0;
  alone_ = false;
  ++times_made_;
  asked_ns_ = waiting_since_ns_ = now_ns();
  const Endpoint endpoint = parse_url(url);
  context_.reset(endpoint.path.empty() ? redisConnectWithTimeout(endpoint.host.c_str(), endpoint.port, kConnectTimeout)
                                       : redisConnectUnixWithTimeout(endpoint.path.c_str(), kConnectTimeout));
  if (!context_ || context_->err != 0) {
    throw ServerFailure(
        fmt::format("--redis {}: cannot connect: {}", name_, context_ ? context_->errstr : "out of memory"));
  }
  // Keep-alive probes of an idle connection, so that firewalls do not drop it.
  if (endpoint.path.empty()) redisEnableKeepAlive(context_.get());
  // hiredis would free a drained buffer larger than this, and allocate it again for the next reply.
  context_->reader->maxbuf = 0;
  // From here on the socket is non-blocking; poll(2) waits, so that a stop request is always noticed.
  context_->flags &= ~REDIS_BLOCK;
  if (fcntl(context_->fd, F_SETFL, fcntl(context_->fd, F_GETFL) | O_NONBLOCK) != 0) {
    throw ServerFailure(fmt::format("--redis {}: fcntl: {}", name_, std::strerror(errno)));
  }
  if (!endpoint.password.empty()) {
    if (endpoint.user.empty()) {
      command({"AUTH", endpoint.password});
    } else {
      command({"AUTH", endpoint.user, endpoint.password});
    }
  }
  command({"PING"});  // an unauthenticated connection fails here, not in the middle of a run
  if (endpoint.database != 0) command({"SELECT", std::to_string(endpoint.database)});
}

namespace {

/// Whether an error reply concerns the server. A key of the wrong type, or a result that the server rejects, concerns a
/// single task.
bool is_about_the_server(std::string_view code, std::string_view answer) {
  if (code == "WRONGTYPE") return false;
  if (code != "ERR") return true;
  return answer.find("max number of clients") != answer.npos || answer.find("can't access") != answer.npos ||
         answer.find("can't run this command") != answer.npos;
}

}  // namespace

ServerFailure::ServerFailure(const std::string& what, std::string_view answer)
    : ServiceFailure(what), code(answer.substr(0, answer.find(' '))) {
  of_the_service = is_about_the_server(code, answer);
}

bool Connection::was_closed() const {
  char byte = 0;
  const ssize_t n = recv(context_->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return n == 0 || (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

void Connection::begin_command(std::size_t words) {
  if (unanswered_ == 0) {
    std::uint64_t now = now_ns();
    if (output_.empty()) {
      // The idle time counts from the last command, not from its reply: the reply may have waited in the socket,
      // followed by the end of the connection.
      if (now - asked_ns_ > kIdleNs && was_closed()) {
        connect(std::string(server_));
        now = now_ns();
      }
      alone_ = true;
    }
    asked_ns_ = waiting_since_ns_ = now;
  }
  fmt::format_to(std::back_inserter(output_), "*{}\r\n", words);
  ++unanswered_;
}

void Connection::add_word(std::string_view word) {
  fmt::format_to(std::back_inserter(output_), "${}\r\n", word.size());
  output_.append(word);
  output_.append("\r\n");
}

void Connection::append(const std::vector<std::string_view>& words) {
  begin_command(words.size());
  for (const auto word : words) add_word(word);
}

void Connection::append_unanswered(const std::vector<std::string_view>& words) {
  append({"CLIENT", "REPLY", "SKIP"});
  append(words);
  unanswered_ -= 2;
}

void Connection::make_anew() {
  std::string output = std::move(output_);
  const std::size_t unanswered = unanswered_;
  connect(std::string(server_));
  output_ = std::move(output);
  unanswered_ = unanswered;
}

void Connection::fail_to_send(int error) {
  // An error reply that the server sent before it closed the connection is more informative than errno.
  if (const ssize_t n = recv(context_->fd, input_.data(), input_.size(), MSG_DONTWAIT); n > 0) {
    redisReaderFeed(context_->reader, input_.data(), static_cast<std::size_t>(n));
  }
  for (void* raw = nullptr; redisReaderGetReply(context_->reader, &raw) == REDIS_OK && raw != nullptr;) {
    const Reply reply(static_cast<redisReply*>(raw));
    if (reply->type == REDIS_REPLY_ERROR)
      throw ServerFailure(fmt::format("Redis {}: {}", name_, text(*reply)), text(*reply));
  }
  throw ServerFailure(fmt::format("Redis {}: sending: {}", name_, std::strerror(error)));
}

bool Connection::flush() {
  while (sent_ < output_.size()) {
    const ssize_t n = send(context_->fd, output_.data() + sent_, output_.size() - sent_, MSG_NOSIGNAL);
    if (n < 0) {
      if (errno == EAGAIN || errno == EWOULDBLOCK) {
        // A connection that never catches up completely must not keep everything that it has sent.
        if (sent_ > kMaxSentKept) output_.erase(0, std::exchange(sent_, 0));
        return false;
      }
      if (errno == EINTR) continue;
      if ((errno == EPIPE || errno == ECONNRESET) && std::exchange(alone_, false)) {
        make_anew();
        continue;
      }
      fail_to_send(errno);
    }
    alone_ = false;
    sent_ += static_cast<std::size_t>(n);
  }
  output_.clear();
  sent_ = 0;
  return true;
}

Reply Connection::next_reply() {
  void* raw = nullptr;
  if (redisReaderGetReply(context_->reader, &raw) != REDIS_OK) {
    throw ServerFailure(fmt::format("Redis {}: {}", name_, context_->reader->errstr));
  }
  Reply reply(static_cast<redisReply*>(raw));
  if (reply) {
    --unanswered_;
    if (reply->type == REDIS_REPLY_ERROR)
      throw ServerFailure(fmt::format("Redis {}: {}", name_, text(*reply)), text(*reply));
  }
  return reply;
}

Reply Connection::try_read() {
  if (unanswered_ == 0) return nullptr;
  flush();
  return receive_some(true);
}

Reply Connection::try_receive() {
  ++unanswered_;  // decremented when the message arrives
  Reply message = receive_some(false);
  if (!message) --unanswered_;
  return message;
}

Reply Connection::receive_some(bool awaited) {
  if (Reply reply = next_reply()) return reply;
  const ssize_t n = recv(context_->fd, input_.data(), input_.size(), 0);
  if (n == 0) throw ServerFailure(fmt::format("Redis {}: the server closed the connection", name_));
  if (n < 0) {
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) {
      if (!awaited || now_ns() - waiting_since_ns_ < kReplyTimeoutNs) return nullptr;
      throw ServerFailure(fmt::format("Redis {}: no answer within 5 s", name_));
    }
    throw ServerFailure(fmt::format("Redis {}: receiving: {}", name_, std::strerror(errno)));
  }
  waiting_since_ns_ = now_ns();
  redisReaderFeed(context_->reader, input_.data(), static_cast<std::size_t>(n));
  return next_reply();
}

Reply Connection::read() {
  while (true) {
    if (Reply reply = try_read()) return reply;
    const bool all_sent = flush();
    pollfd descriptor{context_->fd, static_cast<short>(POLLIN | (all_sent ? 0 : POLLOUT)), 0};
    poll(&descriptor, 1, 1000);
  }
}

Reply Connection::command(const std::vector<std::string_view>& words) {
  append(words);
  return read();
}

}  // namespace feedrate::redis
