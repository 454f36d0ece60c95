#include <benchmark/benchmark.h>

#include <memory>
#include <string>
#include <vector>

#include "common/clock.hpp"
#include "common/error.hpp"
#include "common/redis/connection.hpp"
#include "common/redis/private_server.hpp"

namespace feedrate::redis {
namespace {

constexpr int kCommands = 4;  // encoded between two readings of the clock, which cost some 40 ns

/// Encodes LPUSH commands with state.range(0) elements of 80 bytes (64 bytes of payload) into the connection's buffer.
/// Sending them to a private server and reading the replies is not timed; doing so leaves the buffer empty but already
/// grown, as it is while a queue is running.
void redis_encode_lpush(benchmark::State& state) {
  std::unique_ptr<PrivateServer> server;
  try {
    server = std::make_unique<PrivateServer>();
  } catch (const BadInput& none) {
    return state.SkipWithError(none.what());
  }
  const auto elements = static_cast<std::size_t>(state.range(0));
  const std::string element(80, 'x');
  Connection connection(server->url());
  for (auto _ : state) {
    const std::uint64_t start = now_ns();
    for (int command = 0; command < kCommands; ++command) {
      connection.begin_command(2 + elements);
      connection.add_word("LPUSH");
      connection.add_word("micro");
      for (std::size_t i = 0; i < elements; ++i) connection.add_word(element);
    }
    state.SetIterationTime(static_cast<double>(now_ns() - start) * 1e-9);
    connection.append({"DEL", "micro"});
    while (connection.unanswered() != 0) connection.read();
  }
  const auto encoded = state.iterations() * kCommands * static_cast<std::int64_t>(elements);
  state.SetItemsProcessed(encoded);
  state.SetBytesProcessed(encoded * static_cast<std::int64_t>(element.size()));
}
BENCHMARK(redis_encode_lpush)->ArgName("elements")->Arg(64)->Arg(512)->UseManualTime();

}  // namespace
}  // namespace feedrate::redis
