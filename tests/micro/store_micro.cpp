#include <benchmark/benchmark.h>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "common/redis/connection.hpp"
#include "common/redis/private_server.hpp"
#include "feedrate/tensors.hpp"
#include "libraries/tensors/store/daemon.hpp"
#include "libraries/tensors/store/mirror.hpp"

/// Cost of the tensor store's operations as seen by a client. By default the daemon is a thread of the same process and
/// uses host memory; with FEEDRATE_STORE_SOCKET, the store that listens on that socket is measured.
namespace feedrate::tensors {
namespace {

struct Running {
  explicit Running(bool with_redis = false) {
    if (const char* given = std::getenv("FEEDRATE_STORE_SOCKET")) {
      socket = given;
      Store store(socket);
      for (const auto& about : store.list()) store.remove(about.name);
      if (const char* url = std::getenv("FEEDRATE_STORE_REDIS")) redis = url;
      return;
    }
    if (mkdtemp(folder.data()) == nullptr) throw std::runtime_error("mkdtemp");
    socket = folder + "/s";
    daemon.emplace(*memory, DaemonOptions{.socket = socket, .memory = std::size_t{2} << 30});
    if (with_redis) {
      server.emplace();
      redis = server->url();
      const MirrorOptions options{redis, "feedrate:store:micro", "tensor_lifecycle"};
      mirror.emplace(options, *daemon);
      control.emplace(options, *daemon);
    }
    thread = std::jthread([this](const std::stop_token& stop) { daemon->run(stop); });
  }
  ~Running() {
    if (!thread.joinable()) return;
    control.reset();
    mirror.reset();
    thread = {};
    daemon.reset();
    std::filesystem::remove_all(folder);
  }
  std::string folder = (std::filesystem::temp_directory_path() / "frt-XXXXXX").string(), socket, redis;
  std::unique_ptr<ChunkMemory> memory = memfd_memory();
  std::optional<Daemon> daemon;
  std::optional<redis::PrivateServer> server;
  std::optional<Mirror> mirror;
  std::optional<ListControl> control;
  std::jthread thread;
};

Layout bytes(std::int64_t count) { return {Dtype::u8, {count}, {}}; }

void store_get_leased(benchmark::State& state) {
  Running running;
  Store store(running.socket);
  const Tensor held = store.create("x", bytes(1 << 20));
  for (auto _ : state) benchmark::DoNotOptimize(store.get("x").data());
}
BENCHMARK(store_get_leased)->UseRealTime();

void store_get_mapped(benchmark::State& state) {
  Running running;
  Store store(running.socket);
  store.create("x", bytes(1 << 20));
  for (auto _ : state) benchmark::DoNotOptimize(store.get("x").data());
}
BENCHMARK(store_get_mapped)->UseRealTime();

void store_get_first(benchmark::State& state) {
  Running running;
  Store store(running.socket);
  store.create("x", bytes(64 << 20));
  for (auto _ : state) benchmark::DoNotOptimize(store.get("x").data());
}
BENCHMARK(store_get_first)->UseRealTime();

void store_create_delete(benchmark::State& state) {
  Running running;
  Store store(running.socket);
  for (auto _ : state) {
    const Tensor made = store.create("x", bytes(state.range(0)));
    store.remove("x");
  }
}
BENCHMARK(store_create_delete)->Arg(4096)->Arg(1 << 20)->UseRealTime();

/// Creates and deletes through the Redis list, with state.range(0) pairs of requests at a time.
void store_create_delete_by_list(benchmark::State& state) {
  Running running(true);
  if (running.redis.empty()) return state.SkipWithError("FEEDRATE_STORE_REDIS is not set to a server");
  redis::Connection connection(running.redis);
  const auto pairs = static_cast<unsigned>(state.range(0));
  const auto ask = [&](const std::string& request) { connection.append({"RPUSH", "tensor_lifecycle", request}); };
  unsigned wrong = 0;
  for (auto _ : state) {
    for (unsigned i = 0; i < pairs; ++i) {
      const std::string rest = "\"name\":\"x" + std::to_string(i) + "\",\"reply_to\":\"tensor_lifecycle:micro\"";
      ask("{\"op\":\"create\",\"dtype\":\"u8\",\"shape\":[1048576]," + rest + "}");
      ask("{\"op\":\"delete\"," + rest + "}");
    }
    for (unsigned i = 0; i < 2 * pairs; ++i) connection.read();
    for (unsigned i = 0; i < 2 * pairs; ++i) {
      const redis::Reply reply = connection.command({"BLPOP", "tensor_lifecycle:micro", "5"});
      if (reply->elements != 2 || redis::text(*reply->element[1]).find("\"ok\":true") == std::string_view::npos)
        ++wrong;
    }
  }
  if (wrong != 0) state.SkipWithError("the store rejected a request");
  state.SetItemsProcessed(state.iterations() * pairs);
}
BENCHMARK(store_create_delete_by_list)->Arg(1)->Arg(32)->UseRealTime();

void store_list(benchmark::State& state) {
  Running running;
  Store store(running.socket);
  for (int i = 0; i < state.range(0); ++i) store.create("tensor/" + std::to_string(i), bytes(4096));
  for (auto _ : state) benchmark::DoNotOptimize(store.list().size());
  const auto chunks = nlohmann::json::parse(store.status()).at("chunk_bytes").get<double>();
  state.counters["memory_overhead"] = chunks / (4096.0 * static_cast<double>(state.range(0))) - 1;
}
BENCHMARK(store_list)->Arg(100'000)->Unit(benchmark::kMillisecond)->Iterations(3)->UseRealTime();

void store_publish_and_see(benchmark::State& state) {
  Running running;
  Store store(running.socket);
  Tensor tensor = store.create("x", bytes(64));
  std::uint64_t version = 0;
  for (auto _ : state) {
    tensor.publish();
    benchmark::DoNotOptimize(tensor.wait_for(++version, std::chrono::seconds(1)));
  }
}
BENCHMARK(store_publish_and_see)->UseRealTime();

}  // namespace
}  // namespace feedrate::tensors
