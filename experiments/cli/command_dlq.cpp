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

/// Dead letters with the service that holds them, which must outlive `letters`.
struct Opened {
  RunningServices services;
  std::unique_ptr<DeadLetterBox> letters;
};

Opened open(const DlqOptions& options) {
  const QueueEntry& queue = Queues::instance().get("--queue", options.queue);
  if (!keeps_letters(queue)) throw BadInput("--queue", options.queue, names_of_queues(keeps_letters));
  options.common.services.insist_on(queue.service, "required for dead letters");
  Opened opened{RunningServices(options.common.services), nullptr};
  opened.services.connect(queue.service,
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
  if (!options.json && count > options.most)
    fmt::print("{} of {} shown; use --most to show more\n", options.most, count);
  return 0;
}

[[noreturn]] void no_such_letter(const std::string& letter) {
  throw BadInput("LETTER", letter, "the name of a letter, as printed by `feedrate dlq list`");
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
  fmt::print("history   (unix ms, worker: error)\n{}\n", letter->history);
  const std::string_view bytes = message ? message->payload : letter->task;
  fmt::print("{} bytes of {}\n", bytes.size(), message ? "payload" : "a task that is not a message");
  for (std::size_t at = 0; at < bytes.size(); at += 16) fmt::print("{:08x}  {}\n", at, hex(bytes.substr(at, 16)));
  return 0;
}

/// Applies `act` to one letter or to all, and prints how many letters it changed.
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

void add_dlq(Program& program) {
  auto options = std::make_shared<DlqOptions>();
  CLI::App* command = program.app.add_subcommand("dlq", "list, show, requeue or purge the dead letters of a queue");
  command->require_subcommand(1);
  const auto add = [&](const char* name, const char* help, int (*act)(const DlqOptions&)) {
    CLI::App* sub = command->add_subcommand(name, help);
    add_option(*sub, "queue", options->queue, "queue of the dead letters: " + names_of_queues(keeps_letters));
    options->common.add_services(*sub, services_of_queues(keeps_letters));
    program.on_choice(*sub, [options, act] { return act(*options); });
    return sub;
  };
  CLI::App* listing = add("list", "list all dead letters, oldest first", list);
  add_option(*listing, "most", options->most, "maximum number of letters to show");
  CLI::App* showing = add("show", "show one letter with its history and payload", show);
  showing->add_option("letter", options->letter, "the letter's name, as printed by `list`")->required();
  for (CLI::App* sub : {listing, showing}) sub->add_flag("--json", options->json, "print JSON, one line per letter");
  for (CLI::App* sub :
       {add("requeue", "return tasks to their queue as new tasks", requeue), add("purge", "delete letters", purge)}) {
    sub->add_option("letter", options->letter, "the letter's name, as printed by `list`");
    sub->add_flag("--all", options->all, "all letters");
  }
}

}  // namespace feedrate
