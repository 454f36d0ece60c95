#include <fmt/format.h>

#include <future>

#include "common/error.hpp"
#include "libraries/tensors/store/mirror.hpp"
#include "libraries/tensors/store/reconnect.hpp"

namespace feedrate::tensors {
namespace {

using namespace std::chrono_literals;

constexpr auto kLook = "0.5";           // seconds that an idle BLPOP waits, to see a stop
constexpr auto kMostAtOnce = "256";     // requests of a turn
constexpr auto kAnswerLives = "60000";  // ms: an answer that nobody takes goes

struct ToSend {
  std::string list, text;
};

/// `allowed`: how a list for answers begins. A request must not make us write to somebody else's keys.
ToSend answer_of(Table& table, const Identity& identity, const std::string& text, const std::string& allowed) {
  ToSend answer{reply_to_of(text), {}};
  if (!answer.list.empty() && !answer.list.starts_with(allowed)) {
    spdlog::warn("store: a request names the list '{:.80}' for its answer, which does not begin with {}", answer.list,
                 allowed);
    return {};
  }
  try {
    answer.text = act(table, identity, std::nullopt, parse_request(text)).text();
  } catch (const std::exception& error) {
    answer.text = Answer{to_json(error)}.text();
    if (answer.list.empty()) spdlog::warn("store: a request that can't be, and names no list: {:.200}", error.what());
  }
  return answer;
}

}  // namespace

ListControl::ListControl(MirrorOptions options, Daemon& daemon)
    : options_(std::move(options)), daemon_(daemon), thread_([this](const std::stop_token& stop) { run(stop); }) {}

void ListControl::run(const std::stop_token& stop) {
  with_reconnects("store's list", options_.url, stop, [&](redis::Connection& connection) {
    while (!stop.stop_requested()) {
      const redis::Reply first = connection.command({"BLPOP", options_.list, kLook});
      if (first->elements != 2) continue;
      std::vector<std::string> requests{std::string(redis::text(*first->element[1]))};
      const redis::Reply more = connection.command({"LPOP", options_.list, kMostAtOnce});
      for (std::size_t i = 0; i < more->elements; ++i) requests.emplace_back(redis::text(*more->element[i]));
      serve(connection, requests, stop);
    }
  });
}

void ListControl::serve(redis::Connection& connection, const std::vector<std::string>& requests,
                        const std::stop_token& stop) const {
  auto told = std::make_shared<std::promise<std::vector<ToSend>>>();
  auto all = told->get_future();
  daemon_.post([told, requests, identity = daemon_.identity(), allowed = options_.list + ":"](Table& table) {
    std::vector<ToSend> answers;
    answers.reserve(requests.size());
    for (const std::string& text : requests) answers.push_back(answer_of(table, identity, text, allowed));
    told->set_value(std::move(answers));
  });
  while (all.wait_for(50ms) != std::future_status::ready) {
    if (stop.stop_requested()) return;
  }
  for (const auto& [list, text] : all.get()) {
    if (list.empty()) continue;
    // A key of another kind is the client's mistake, and no reason to lose the connection.
    connection.append_unanswered({"RPUSH", list, text});
    connection.append_unanswered({"PEXPIRE", list, kAnswerLives});
  }
  connection.command({"PING"});  // all was taken; Failure where the server hangs
}

}  // namespace feedrate::tensors
