#include <benchmark/benchmark.h>
#include <stdlib.h>

#include <cstdlib>
#include <filesystem>
#include <thread>

#include "feedrate/tensors.hpp"
#include "variants/tensors/daemon.hpp"

/// What the tensor store's operations cost a client: with the daemon a thread of the same process, in host memory; with
/// FEEDRATE_STORE_SOCKET, of the store that listens there.
namespace feedrate::tensors {
namespace {

struct Running {
  Running() {
    if (const char* given = std::getenv("FEEDRATE_STORE_SOCKET")) {
      socket = given;
      for (const auto& about : Store(socket).list()) Store(socket).remove(about.name);
      return;
    }
    if (mkdtemp(folder.data()) == nullptr) throw std::runtime_error("mkdtemp");
    socket = folder + "/s";
    daemon.emplace(*memory, DaemonOptions{.socket = socket, .memory = std::size_t{2} << 30});
    thread = std::jthread([this](const std::stop_token& stop) { daemon->run(stop); });
  }
  ~Running() {
    if (!thread.joinable()) return;
    thread = {};
    daemon.reset();
    std::filesystem::remove_all(folder);
  }
  std::string folder = (std::filesystem::temp_directory_path() / "frt-XXXXXX").string(), socket;
  std::unique_ptr<ChunkMemory> memory = memfd_memory();
  std::optional<Daemon> daemon;
  std::jthread thread;
};

Layout bytes(std::int64_t count) { return {Dtype::u8, {count}, {}}; }

void store_get_leased(benchmark::State& state) {
  Running running;
  Store store(running.socket);
  const Tensor held = store.create("x", bytes(1 << 20));
  for (auto _ : state) benchmark::DoNotOptimize(store.get("x").data());
}
BENCHMARK(store_get_leased);

void store_get_mapped(benchmark::State& state) {
  Running running;
  Store store(running.socket);
  store.create("x", bytes(1 << 20));
  for (auto _ : state) benchmark::DoNotOptimize(store.get("x").data());
}
BENCHMARK(store_get_mapped);

void store_get_first(benchmark::State& state) {
  Running running;
  Store store(running.socket);
  store.create("x", bytes(64 << 20));
  for (auto _ : state) benchmark::DoNotOptimize(store.get("x").data());
}
BENCHMARK(store_get_first);

void store_create_delete(benchmark::State& state) {
  Running running;
  Store store(running.socket);
  for (auto _ : state) {
    const Tensor made = store.create("x", bytes(state.range(0)));
    store.remove("x");
  }
}
BENCHMARK(store_create_delete)->Arg(4096)->Arg(1 << 20);

void store_list(benchmark::State& state) {
  Running running;
  Store store(running.socket);
  for (int i = 0; i < state.range(0); ++i) store.create("tensor/" + std::to_string(i), bytes(4096));
  for (auto _ : state) benchmark::DoNotOptimize(store.list().size());
}
BENCHMARK(store_list)->Arg(100'000)->Unit(benchmark::kMillisecond)->Iterations(3);

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
BENCHMARK(store_publish_and_see);

}  // namespace
}  // namespace feedrate::tensors
