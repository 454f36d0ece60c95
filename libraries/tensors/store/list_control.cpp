#include "common/error.hpp"
#include "libraries/tensors/store/mirror.hpp"
#include "libraries/tensors/store/reconnect.hpp"

namespace feedrate::tensors {
namespace {

constexpr auto kPollTimeout = "0.5";    // timeout of an idle BLPOP in seconds, so that a stop is noticed
constexpr auto kMaxAtOnce = "256";      // requests per turn
constexpr auto kAnswerLives = "60000";  // lifetime of an answer in ms

struct ToSend {
  std::string list, text;
};

/// `allowed`: the prefix that the name of a reply list must have. A request must not make the store write to other keys.
ToSend answer_of(Table& table, const Identity& identity, const std::string& text, const std::string& allowed) {
  ToSend answer{reply_to_of(text), {}};
  if (!answer.list.empty() && !answer.list.starts_with(allowed)) {
    spdlog::warn("store: ignored a request: its reply_to '{:.80}' does not begin with {}", answer.list, allowed);
    return {};
  }
  try {
    answer.text = act(table, identity, std::nullopt, parse_request(text)).text();
  } catch (const std::exception& error) {
    answer.text = Answer{to_json(error)}.text();
    if (answer.list.empty()) spdlog::warn("store: ignored an invalid request without reply_to: {:.200}", error.what());
  }
  return answer;
}

}  // namespace

ListControl::ListControl(MirrorOptions options, Daemon& daemon)
    : options_(std::move(options)), daemon_(daemon), thread_([this](const std::stop_token& stop) { run(stop); }) {}

void ListControl::run(const std::stop_token& stop) {
  with_reconnects("store's list", options_.url, stop, [&](redis::Connection& connection) {
    while (!stop.stop_requested()) {
      const redis::Reply first = connection.command({"BLPOP", options_.list, kPollTimeout});
      if (first->elements != 2) continue;
      std::vector<std::string> requests{std::string(redis::text(*first->element[1]))};
      const redis::Reply more = connection.command({"LPOP", options_.list, kMaxAtOnce});
      for (std::size_t i = 0; i < more->elements; ++i) requests.emplace_back(redis::text(*more->element[i]));
      serve(connection, requests, stop);
    }
  });
}

void ListControl::serve(redis::Connection& connection, const std::vector<std::string>& requests,
                        const std::stop_token& stop) const {
  const auto answer_all = [requests, identity = daemon_.identity(), allowed = options_.list + ":"](Table& table) {
    std::vector<ToSend> answers;
    answers.reserve(requests.size());
    for (const std::string& text : requests) answers.push_back(answer_of(table, identity, text, allowed));
    return answers;
  };
  const auto answers = daemon_.ask(stop, answer_all);
  if (!answers) return;
  for (const auto& [list, text] : *answers) {
    if (list.empty()) continue;
    // A key of another type is the client's mistake and must not break the connection.
    connection.append_unanswered({"RPUSH", list, text});
    connection.append_unanswered({"PEXPIRE", list, kAnswerLives});
  }
  connection.command({"PING"});  // the server has accepted everything; throws Failure if the server hangs
}

}  // namespace feedrate::tensors
