#include <fmt/format.h>

#include <iostream>
#include <memory>

#include "common/clock.hpp"
#include "common/error.hpp"
#include "common/units.hpp"
#include "experiments/cli/commands.hpp"
#include "experiments/cli/options.hpp"
#include "experiments/harness/json.hpp"
#include "experiments/harness/say.hpp"
#include "variants/feeding/dead_letters.hpp"
#include "variants/feeding/queue.hpp"

namespace feedrate {
namespace {

struct DlqOptions {
  CommonOptions common;
  std::string queue = "redis_list";
  std::string letter;
  std::uint64_t most = 50;
  bool all = false, json = false;
};

std::string hex(std::string_view bytes) {
  std::string text;
  for (const unsigned char byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

Json to_json(const DeadLetter& letter) {
  Json json{{"letter", letter.letter_id},  {"time_ms", letter.time_ms}, {"error", letter.error},
            {"attempts", letter.attempts}, {"worker", letter.worker},   {"history", letter.history},
            {"task_hex", hex(letter.task)}};
  if (!letter.message) return json;
  json["id"] = fmt::format("{:016x}", letter.message->id);
  json["payload_hex"] = hex(letter.message->payload);
  if (letter.message->deadline_ms != 0) json["deadline_ms"] = letter.message->deadline_ms;
  return json;
}

std::string age_of(const DeadLetter& letter) {
  const std::uint64_t now = unix_ms(), then = letter.time_ms;
  return format_ns(static_cast<double>(now > then ? now - then : 0) * 1e6);
}

/// With the service that holds them, which must live as long.
struct Opened {
  RunningServices services;
  std::unique_ptr<DeadLetterBox> letters;
};

Opened open(const DlqOptions& options) {
  const QueueEntry& queue = Queues::instance().get("--queue", options.queue);
  if (!keeps_letters(queue)) throw BadInput("--queue", options.queue, names_of_queues(keeps_letters));
  options.common.services.insist_on(queue.service, "for dead letters it must be named");
  Opened opened{RunningServices(options.common.services), nullptr};
  opened.services.reach(queue.service,
                        [&](const Service& service) { opened.letters = queue.workers->dead_letters(service); });
  return opened;
}

int list(const DlqOptions& options) {
  const Opened opened = open(options);
  DeadLetterBox& letters = *opened.letters;
  const std::uint64_t count = letters.count();
  if (!options.json)
    fmt::print("{:<22}{:<18}{:>9}{:>10}{:>10}  {}\n", "letter", "id", "bytes", "attempts", "age", "error");
  letters.for_each(options.most, [&](const DeadLetter& letter) {
    if (options.json) {
      std::cout << dumped(to_json(letter)) << "\n";
      return;
    }
    const auto& message = letter.message;
    fmt::print("{:<22}{:<18}{:>9}{:>10}{:>10}  {}\n", letter.letter_id,
               message ? fmt::format("{:016x}", message->id) : "no message",
               message ? message->payload.size() : letter.task.size(), letter.attempts, age_of(letter), letter.error);
  });
  if (!options.json && count > options.most) fmt::print("{} of {}; --most shows more\n", options.most, count);
  return 0;
}

[[noreturn]] void no_such_letter(const std::string& letter) {
  throw BadInput("LETTER", letter, "a letter's name as `feedrate dlq list` prints it");
}

int show(const DlqOptions& options) {
  const Opened opened = open(options);
  const auto letter = opened.letters->find(options.letter);
  if (!letter) no_such_letter(options.letter);
  if (options.json) {
    std::cout << dumped(to_json(*letter)) << "\n";
    return 0;
  }
  const auto& message = letter->message;
  fmt::print("letter    {}, {} ago\nerror     {}\nattempts  {}\nworker    {}\n", letter->letter_id, age_of(*letter),
             letter->error, letter->attempts, letter->worker);
  if (message) {
    fmt::print("id        {:016x}: reply list {}, number {}\n", message->id, producer_of(message->id),
               sequence_of(message->id));
  }
  fmt::print("history   (unix ms, worker: what went wrong)\n{}\n", letter->history);
  const std::string_view bytes = message ? message->payload : letter->task;
  fmt::print("{} bytes of {}\n", bytes.size(), message ? "payload" : "no message");
  for (std::size_t at = 0; at < bytes.size(); at += 16) fmt::print("{:08x}  {}\n", at, hex(bytes.substr(at, 16)));
  return 0;
}

/// Does it to one letter or to all, and says to how many.
template <class Do>
int each(const DlqOptions& options, const char* done, Do&& act) {
  if (options.all == !options.letter.empty()) throw BadInput("LETTER", options.letter, "one letter, or --all");
  const Opened opened = open(options);
  DeadLetterBox& letters = *opened.letters;
  if (!options.all) {
    if (!act(letters, options.letter)) no_such_letter(options.letter);
    fmt::print("{} 1 dead letter\n", done);
    return 0;
  }
  std::vector<std::string> ids;
  letters.for_each(~std::uint64_t{0}, [&](const DeadLetter& letter) { ids.push_back(letter.letter_id); });
  std::size_t count = 0, failed = 0;
  for (const std::string& id : ids) {
    try {
      count += act(letters, id) ? 1 : 0;
    } catch (const Failure& failure) {
      ++failed;
      say("{}: {}\n", id, failure.what());
    }
  }
  fmt::print("{} {} dead letter{}\n", done, count, count == 1 ? "" : "s");
  return failed == 0 ? 0 : 1;
}

int requeue(const DlqOptions& options) {
  return each(options, "requeued", [](DeadLetterBox& letters, const std::string& id) { return letters.requeue(id); });
}
int purge(const DlqOptions& options) {
  return each(options, "purged", [](DeadLetterBox& letters, const std::string& id) { return letters.purge(id); });
}

}  // namespace

void add_dlq(CLI::App& app, Action& action) {
  auto options = std::make_shared<DlqOptions>();
  CLI::App* command = app.add_subcommand("dlq", "the dead letters of a queue: list, show, requeue, purge");
  command->require_subcommand(1);
  const auto add = [&](const char* name, const char* help, int (*act)(const DlqOptions&)) {
    CLI::App* sub = command->add_subcommand(name, help);
    add_option(*sub, "queue", options->queue, "whose: " + names_of_queues(keeps_letters));
    options->common.add_services(*sub, services_of_queues(keeps_letters));
    sub->callback([options, act, &action] { action = [options, act] { return act(*options); }; });
    return sub;
  };
  CLI::App* listing = add("list", "all of them, the oldest first", list);
  add_option(*listing, "most", options->most, "letters that are shown");
  CLI::App* showing = add("show", "one with its history and payload", show);
  showing->add_option("letter", options->letter, "its name, as `list` prints it")->required();
  for (CLI::App* sub : {listing, showing}) sub->add_flag("--json", options->json, "as JSON, one line a letter");
  for (CLI::App* sub : {add("requeue", "give tasks back to their queue, as if they were new", requeue),
                        add("purge", "remove letters", purge)}) {
    sub->add_option("letter", options->letter, "its name, as `list` prints it");
    sub->add_flag("--all", options->all, "every letter");
  }
}

}  // namespace feedrate
