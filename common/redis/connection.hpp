#pragma once
#include <hiredis/hiredis.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/error.hpp"
#include "common/redis/url.hpp"

namespace feedrate::redis {

struct FreeReply {
  void operator()(redisReply* reply) const { freeReplyObject(reply); }
};
using Reply = std::unique_ptr<redisReply, FreeReply>;

inline std::string_view text(const redisReply& reply) { return {reply.str, reply.len}; }

/// An error reply from a server, or a lost server. A new connection may succeed.
struct FEEDRATE_EXPORT ServerFailure : ServiceFailure {
  using ServiceFailure::ServiceFailure;
  /// `answer`: the error reply.
  ServerFailure(const std::string& what, std::string_view answer);
  std::string code = {};  ///< the first word of an error reply ("OOM"); empty if the connection failed
};

/// A pipelined connection. Commands are appended to a buffer and sent when the socket accepts them; replies arrive in
/// order. Error replies (OOM, NOAUTH, WRONGTYPE …) and lost connections throw ServerFailure with the server's message.
/// If an idle connection was closed (by the server's `timeout` or a proxy), the next command reconnects, even if the
/// closure is detected only when sending the command's first bytes fails.
class Connection {
 public:
  /// Connects to the first of the URL's servers that replies. Throws Failure if no server can be reached or a server
  /// rejects the password.
  explicit Connection(const std::string& url);
  Connection(Connection&&) = default;
  Connection& operator=(Connection&&) = default;

  /// Appends a command of binary-safe words.
  void append(const std::vector<std::string_view>& words);
  /// Appends a command whose reply the server suppresses, even if it is an error.
  void append_unanswered(const std::vector<std::string_view>& words);
  /// Starts a command of `words` words, for encoders that build a long command piece by piece; add_word() appends each
  /// word.
  void begin_command(std::size_t words);
  void add_word(std::string_view word);

  /// Sends as much as the socket accepts without blocking; returns true if everything is sent.
  bool flush();
  std::size_t unsent() const { return output_.size() - sent_; }
  std::size_t unanswered() const { return unanswered_; }
  /// Number of times the connection was established. A new connection, or its server, may have lost earlier state.
  unsigned times_made() const { return times_made_; }
  /// Sends, then returns the next reply if it has arrived, otherwise null. Throws ServerFailure on an error reply, or
  /// if a reply has been overdue for five seconds, because the connection may be half open.
  Reply try_read();
  /// Returns the next message of a subscription, if one has arrived. Such messages are not replies to commands.
  Reply try_receive();
  /// Waits for the next reply. Throws Failure if none arrives within five seconds.
  Reply read();
  /// Appends a command, sends it, and waits for its reply. All earlier replies must have been read.
  Reply command(const std::vector<std::string_view>& words);

 private:
  void connect(const std::string& url);
  struct FreeContext {
    void operator()(redisContext* context) const { redisFree(context); }
  };
  Reply next_reply();
  /// `awaited`: whether a reply from the server is outstanding.
  Reply receive_some(bool awaited);
  bool was_closed() const;
  /// Reconnects and keeps the output buffer.
  void make_anew();
  [[noreturn]] void fail_to_send(int error);

  std::unique_ptr<redisContext, FreeContext> context_;
  std::string server_;  // the server's URL
  std::string name_;    // the URL without password, for messages
  std::string output_;
  std::size_t sent_ = 0;
  std::size_t unanswered_ = 0;
  unsigned times_made_ = 0;
  bool alone_ = false;                  // no byte of `output_` has been sent, and no earlier command is unanswered
  std::uint64_t asked_ns_ = 0;          // start of the last command that was appended while no reply was outstanding
  std::uint64_t waiting_since_ns_ = 0;  // start of the wait for the next bytes
  std::vector<char> input_;
};

}  // namespace feedrate::redis
