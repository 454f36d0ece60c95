#pragma once
#include <atomic>
#include <map>
#include <mutex>
#include <set>

#include "tests/cli/task_format.hpp"

namespace feedrate::cli_test {

/// A client of workers that keeps a ledger of every id: one thread sends tasks steadily, another collects results, and
/// both reconnect when their connections are cut. A task counts as sent once the server has acknowledged it.
class Ledger {
 public:
  Ledger(std::string socket, std::string queue, std::string prefix = "t")
      : socket_(std::move(socket)),
        stream_(queue == "redis_stream"),
        sorted_(queue == "redis_priority"),
        keeps_(at_least_once(queue)),
        prefix_(std::move(prefix)) {
    collecting_ = std::jthread([this](const std::stop_token& stop) { collect(stop); });
  }
  ~Ledger() { stop_sending(); }

  /// Sends `per_second` tasks per second, each with `words` 4-byte words, until stopped.
  void start_sending(double per_second, std::size_t words = 16) {
    words_ = words;
    sending_ = std::jthread([this, per_second](const std::stop_token& stop) { send(stop, per_second); });
  }
  void stop_sending() {
    sending_.request_stop();
    if (sending_.joinable()) sending_.join();
  }
  struct Tally {
    std::size_t sent = 0, answered = 0, failed = 0, lost = 0;
    std::uint64_t duplicated = 0;
  };
  Tally tally() const {
    const std::lock_guard lock(mutex_);
    Tally tally{.sent = sent_.size()};
    for (const std::uint64_t id : sent_) {
      const auto found = results_.find(id);
      if (found == results_.end()) {
        ++tally.lost;
        continue;
      }
      ++tally.answered;
      tally.failed += found->second.failed ? 1 : 0;
      tally.duplicated += found->second.times - 1;
    }
    return tally;
  }
  /// Waits until every sent task has a result or no result has arrived for a while: one minute for a queue that may not
  /// lose tasks, since a busy machine is slow; 1.5 s for a queue that may, since its results are never that late.
  /// Returns the seconds until the last result.
  double settle() {
    const Seconds patience = keeps_ ? Seconds(60) : Seconds(1.5);
    std::size_t answered = tally().answered;
    const auto begin = std::chrono::steady_clock::now();
    auto last = begin;
    while (tally().lost != 0 && std::chrono::steady_clock::now() - last < patience) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      if (const std::size_t now = tally().answered; now != answered) {
        answered = now;
        last = std::chrono::steady_clock::now();
      }
    }
    std::this_thread::sleep_for(Seconds(0.3));  // time for duplicates to arrive
    return Seconds(last - begin).count();
  }
  /// Ids of the ledger's connections in CLIENT LIST.
  std::set<long long> connections() const { return {sender_.load(), collector_.load()}; }

 private:
  struct Result {
    std::uint64_t times = 0;
    bool failed = false;
  };
  struct FreeContext {
    void operator()(redisContext* context) const { redisFree(context); }
  };
  using Context = std::unique_ptr<redisContext, FreeContext>;

  Context connect(std::atomic<long long>& id) const {
    Context context(redisConnectUnix(socket_.c_str()));
    if (!context || context->err != 0) return nullptr;
    const Reply reply(static_cast<redisReply*>(redisCommand(context.get(), "CLIENT ID")));
    if (!reply || reply->type != REDIS_REPLY_INTEGER) return nullptr;
    id = reply->integer;
    return context;
  }
  /// Turns a write to a cut connection into an error instead of SIGPIPE. It blocks the signal in this thread only,
  /// because child processes would inherit a process-wide setting.
  static void ignore_broken_pipes() {
    sigset_t broken;
    sigemptyset(&broken);
    sigaddset(&broken, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &broken, nullptr);
  }
  void append(redisContext& context, const std::string& element, std::uint64_t score) const {
    if (stream_) {
      redisAppendCommand(&context, "XADD %s:tasks * m %b", prefix_.c_str(), element.data(), element.size());
    } else if (sorted_) {
      redisAppendCommand(&context, "ZADD %s:tasks %llu %b", prefix_.c_str(), static_cast<unsigned long long>(score),
                         element.data(), element.size());
    } else {
      redisAppendCommand(&context, "LPUSH %s:tasks %b", prefix_.c_str(), element.data(), element.size());
    }
  }
  void send(const std::stop_token& stop, double per_second) {
    ignore_broken_pipes();
    using Clock = std::chrono::steady_clock;
    Context context;
    const auto begin = Clock::now();
    std::uint64_t next = 0;
    while (!stop.stop_requested()) {
      if (!context && !(context = connect(sender_))) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        continue;
      }
      std::vector<std::vector<std::uint64_t>> asked;  // ids in each element; empty for an element that is not a message
      const auto due = static_cast<std::uint64_t>(Seconds(Clock::now() - begin).count() * per_second);
      while (next < due && asked.size() < 200) {
        std::vector<std::uint64_t> ids;
        std::string element;
        for (int n = next % 16 == 3 ? 3 : 1; n != 0; --n, ++next) {
          ids.push_back(next);
          element += encode(next, std::vector<std::uint32_t>(words_, static_cast<std::uint32_t>(next)));
        }
        append(*context, element, next);
        asked.push_back(std::move(ids));
        if (next % 64 == 0) {  // garbage, as an unrelated client might send
          append(*context, "no message " + std::to_string(next), next);
          asked.emplace_back();
        }
      }
      for (const auto& ids : asked) {
        void* raw = nullptr;
        if (redisGetReply(context.get(), &raw) != REDIS_OK) {
          context.reset();  // it is unknown whether the rest arrived
          break;
        }
        const Reply reply(static_cast<redisReply*>(raw));
        if (reply->type == REDIS_REPLY_ERROR) continue;
        const std::lock_guard lock(mutex_);
        sent_.insert(ids.begin(), ids.end());
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  void collect(const std::stop_token& stop) {
    ignore_broken_pipes();
    Context context;
    std::string last = "0";
    std::vector<std::string> untrimmed;  // elements already read that may still be in the list
    while (!stop.stop_requested()) {
      if (!context && !(context = connect(collector_))) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        continue;
      }
      const Reply reply(static_cast<redisReply*>(
          stream_
              ? redisCommand(context.get(), "XREAD COUNT 1000 STREAMS %s:results:0 %s", prefix_.c_str(), last.c_str())
              : redisCommand(context.get(), "LRANGE %s:results:0 -1000 -1", prefix_.c_str())));
      if (!reply) {
        context.reset();
        continue;
      }
      if (reply->type != REDIS_REPLY_ARRAY || reply->elements == 0) {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        continue;
      }
      const redisReply& list = stream_ ? *reply->element[0]->element[1] : *reply;
      std::size_t fresh = list.elements;
      if (ends_with(list, untrimmed)) fresh -= untrimmed.size();  // already read, but their removal failed
      for (std::size_t i = 0; i < fresh; ++i) {
        const redisReply& element = stream_ ? *list.element[i]->element[1]->element[1] : *list.element[i];
        if (stream_) last = list.element[i]->element[0]->str;
        take({element.str, element.len});
      }
      if (stream_) continue;
      untrimmed.clear();
      for (std::size_t i = 0; i < list.elements; ++i) {
        untrimmed.emplace_back(list.element[i]->str, list.element[i]->len);
      }
      if (remove(context, list.elements, stop)) untrimmed.clear();
    }
  }
  static bool ends_with(const redisReply& list, const std::vector<std::string>& tail) {
    if (tail.empty() || tail.size() > list.elements) return false;
    const std::size_t from = list.elements - tail.size();
    for (std::size_t i = 0; i < tail.size(); ++i) {
      const redisReply& element = *list.element[from + i];
      if (tail[i] != std::string_view(element.str, element.len)) return false;
    }
    return true;
  }
  /// Removes elements only after they have been received, so that a cut connection loses nothing. Retries while the
  /// server rejects writes. Returns false if the connection broke, in which case the elements may still be in the list.
  bool remove(Context& context, std::size_t elements, const std::stop_token& stop) const {
    while (!stop.stop_requested()) {
      const Reply trimmed(static_cast<redisReply*>(
          redisCommand(context.get(), "LTRIM %s:results:0 0 %d", prefix_.c_str(), -1 - static_cast<int>(elements))));
      if (!trimmed) {
        context.reset();
        return false;
      }
      if (trimmed->type != REDIS_REPLY_ERROR) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return false;
  }
  void take(const std::string& element) {
    const std::lock_guard lock(mutex_);
    for (std::size_t at = 0; at + 16 <= element.size();) {
      const Message message = decode(element.substr(at));
      const bool failed = (message.length & kFailed) != 0;
      Result& result = results_[message.id];
      ++result.times;
      result.failed = failed;
      at += (16 + (failed ? 0 : message.length) + 15) / 16 * 16;
    }
  }

  std::string socket_;
  bool stream_, sorted_, keeps_;
  std::string prefix_;
  std::size_t words_ = 16;
  mutable std::mutex mutex_;
  std::set<std::uint64_t> sent_;
  std::map<std::uint64_t, Result> results_;
  std::atomic<long long> sender_ = 0, collector_ = 0;
  std::jthread collecting_, sending_;
};

}  // namespace feedrate::cli_test
