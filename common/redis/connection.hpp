#pragma once
#include <hiredis/hiredis.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/redis/url.hpp"
#include "common/service_failure.hpp"

namespace feedrate::redis {

struct FreeReply {
  void operator()(redisReply* reply) const { freeReplyObject(reply); }
};
using Reply = std::unique_ptr<redisReply, FreeReply>;

inline std::string_view text(const redisReply& reply) { return {reply.str, reply.len}; }

/// What a server answered wrongly, or that it went away: with a new connection it may be over.
struct FEEDRATE_EXPORT ServerFailure : ServiceFailure {
  using ServiceFailure::ServiceFailure;
  /// `answer`: an error reply.
  ServerFailure(const std::string& what, std::string_view answer);
  std::string code = {};  ///< the first word of an error reply ("OOM"); empty where the connection failed
};

/// One pipelined connection: commands are appended to a buffer, sent when the socket takes them, and answered in order.
/// Errors that the server answers (OOM, NOAUTH, WRONGTYPE …) and lost connections throw ServerFailure with the
/// server's words. A connection that was closed while nothing was asked (a server's `timeout`, a proxy) is made anew by
/// the next command, also if that is only found when nothing of the command could be sent.
class Connection {
 public:
  /// To the first of the URL's servers that answers. Throws Failure when none can be reached or one refuses the
  /// password.
  explicit Connection(const std::string& url);
  Connection(Connection&&) = default;
  Connection& operator=(Connection&&) = default;

  /// Adds a command of binary-safe words.
  void append(const std::vector<std::string_view>& words);
  /// Adds a command whose reply, an error included, the server keeps to itself.
  void append_unanswered(const std::vector<std::string_view>& words);
  /// For encoders that build a long command piece by piece: announces `words` words, then adds each.
  void begin_command(std::size_t words);
  void add_word(std::string_view word);

  /// Sends what the socket takes without blocking; true when nothing is left.
  bool flush();
  std::size_t unsent() const { return output_.size() - sent_; }
  std::size_t unanswered() const { return unanswered_; }
  /// How often the connection was made. A new one, or its server, may have lost earlier state.
  unsigned times_made() const { return times_made_; }
  /// The next reply if it has arrived, else null. Sends first. Throws ServerFailure on an error reply, and when the
  /// server has owed one for five seconds: the connection may be half open.
  Reply try_read();
  /// The next message of a subscription, if one has arrived: nobody asked for it, so it is no answer.
  Reply try_receive();
  /// Waits for the next reply; Failure when none comes within five seconds.
  Reply read();
  /// Appends, sends, waits. All earlier replies must have been read.
  Reply command(const std::vector<std::string_view>& words);

 private:
  void connect(const std::string& url);
  struct FreeContext {
    void operator()(redisContext* context) const { redisFree(context); }
  };
  Reply next_reply();
  /// `awaited`: the server owes something.
  Reply receive_some(bool awaited);
  bool was_closed() const;
  /// Makes the connection anew and keeps the output.
  void make_anew();
  [[noreturn]] void fail_to_send(int error);

  std::unique_ptr<redisContext, FreeContext> context_;
  std::string server_;  // its URL
  std::string name_;    // the same for messages
  std::string output_;
  std::size_t sent_ = 0;
  std::size_t unanswered_ = 0;
  unsigned times_made_ = 0;
  bool alone_ = false;                  // nothing of `output_` is sent, and no earlier command is unanswered
  std::uint64_t asked_ns_ = 0;          // when the last command began that followed no unanswered one
  std::uint64_t waiting_since_ns_ = 0;  // for the next bytes
  std::vector<char> input_;
};

}  // namespace feedrate::redis
