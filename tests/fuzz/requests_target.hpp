#pragma once
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string_view>

#include "common/error.hpp"
#include "libraries/tensors/store/requests.hpp"

namespace feedrate::test {

/// Reads lines as a tensor store reads a client's packets, every other line as if from the Redis list, and executes
/// them. Aborts if it finds an error that a sanitizer would not detect.
inline void serve_foreign_requests(const std::uint8_t* data, std::size_t size) {
  using namespace tensors;
  static const auto memory = memfd_memory();
  std::uint64_t now = 1'000'000, left = 0;
  std::size_t names = 0;
  Table table(
      *memory, std::size_t{4} << 20, {.tensors = 64, .leases_of_client = 64},
      [&](Table::Change change, const Description&) {
        names += change == Table::Change::created ? 1 : 0;
        names -= change == Table::Change::deleted ? 1 : 0;
      },
      [&] { return now; });
  const ClientId client = table.join("a client");
  const Identity identity{"cpu", "node", "memfd", "/socket", "instance"};
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  for (bool by_list = false; !rest.empty(); by_list = !by_list) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view text = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    now += 100;
    table.expire();
    reply_to_of(text);
    std::string answer;
    try {
      answer = act(table, identity, by_list ? std::nullopt : std::optional(client), parse_request(text)).text();
    } catch (const BadInput& error) {
      answer = Answer{to_json(error)}.text();
    }
    if (answer.empty() || answer.size() > kMaxPacketBytes) std::abort();
    if (names != table.tensors() || table.arena().taken() > table.arena().reserved()) std::abort();
    if (table.arena().reserved() > table.arena().limit() || table.leases() != table.client(client).leases.size())
      std::abort();
  }
  table.leave(client);
  left = table.leases() + table.deleted();
  table.evict(~std::size_t{0});
  for (const auto& about : table.list("", 64)) table.remove(about.name);  // pinned tensors
  if (left != 0 || table.tensors() != 0 || table.arena().taken() != 0) std::abort();
}

}  // namespace feedrate::test
