// A store under load while clients, the daemon and the Redis server are killed: no read is torn or returns another
// tensor, the references of a dead process are dropped within a second, and no memory is lost.
//   FEEDRATE_STORE_KILLS=200 FEEDRATE_STORE_SECONDS=600 FEEDRATE_STORE_CLIENTS=8 test_cli --gtest_filter='StoreSoak*'
// With FEEDRATE_TEST_DEVICE=cuda (and FEEDRATE_STORE_SHARE=vmm, pool or legacy) the store uses GPU memory.
#include <sys/mman.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <random>

#include "feedrate/tensors.hpp"
#include "libraries/tensors/protocol.hpp"
#include "tests/cli/feedrate_process.hpp"
#include "tests/cli/gpu_memory.hpp"
#include "tests/cli/provenance.hpp"

namespace feedrate::cli_test {
namespace {

using tensors::Dtype;
using tensors::Store;
using tensors::Tensor;

unsigned setting(const char* name, unsigned otherwise) {
  return static_cast<unsigned>(std::stoul(from_environment(name, std::to_string(otherwise).c_str())));
}

/// Counters shared by all processes.
struct Counts {
  std::atomic<std::uint64_t> made{0}, read{0}, deleted{0}, full{0}, wrong{0};
};

/// Value of every word of a tensor: it identifies the tensor and is written only once.
std::uint64_t mark_of(std::uint64_t generation) { return generation * 0x9E37'79B9'7F4A'7C15ull | 1; }

bool holds(const Tensor& tensor, std::uint64_t word) {
  std::vector<std::uint64_t> data(tensor.bytes() / 8, ~word);
  tensor.read(std::as_writable_bytes(std::span(data)));
  return std::ranges::all_of(data, [word](std::uint64_t each) { return each == word; });
}

void act(Store& store, std::mt19937& random, std::vector<Tensor>& held, Counts& counts) {
  const std::string name = "t" + std::to_string(random() % 24);
  switch (random() % 8) {
    case 0:
    case 1:
    case 2: {
      const std::int64_t words = std::int64_t{1} << (random() % 15 + 6);
      Tensor made = store.create(name, {Dtype::u64, {words}, {}}, {.evict = random() % 2 == 0});
      if (!holds(made, 0)) ++counts.wrong;
      const std::vector<std::uint64_t> data(made.bytes() / 8, mark_of(made.generation()));
      made.write(std::as_bytes(std::span(data)));
      made.publish();
      ++counts.made;
      held.push_back(made);
      break;
    }
    case 3:
      store.remove(name);
      ++counts.deleted;
      break;
    default:
      held.push_back(store.get(name));
  }
  for (const Tensor& tensor : held) {
    if (tensor.version() == 0) continue;  // the creator has not written the tensor yet or was killed
    if (!holds(tensor, mark_of(tensor.generation()))) ++counts.wrong;
    ++counts.read;
  }
  if (held.size() > 4) held.erase(held.begin(), held.begin() + 1 + static_cast<std::ptrdiff_t>(random() % held.size()));
}

/// Maps the counters from a descriptor that child processes inherit.
Counts* map_counts(int descriptor) {
  void* const data = mmap(nullptr, sizeof(Counts), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  return data == MAP_FAILED ? nullptr : static_cast<Counts*>(data);
}

/// Works until the process is killed, and reconnects after a restart of the daemon.
[[noreturn]] void work(const std::string& socket, unsigned seed, Counts& counts) {
  std::mt19937 random(seed);
  std::vector<Tensor> held;
  std::optional<Store> store;
  while (true) {
    try {
      if (!store) store.emplace(socket);
      act(*store, random, held, counts);
    } catch (const tensors::Unreachable&) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    } catch (const tensors::OutOfMemory&) {
      ++counts.full;
      held.clear();
    } catch (const tensors::StoreError&) {  // another client had created the name, or the tensor is gone
    } catch (const std::exception& error) {
      std::fprintf(stderr, "client: %s\n", error.what());
      ++counts.wrong;
      _exit(1);
    }
  }
}

class StoreSoak : public testing::Test {
 protected:
  StoreSoak() {
    if (!on_gpu()) return;
    // Creates this process's own context before memory use is read.
    start_daemon();
    Store store(socket());
    daemon_->signal(SIGTERM);
    daemon_->wait();
    used_before_ = gpu_memory_used();
  }
  ~StoreSoak() override {
    for (const pid_t child : clients_) end(child);
    daemon_.reset();
    if (on_gpu()) {
      // Memory use according to NVML. The driver's own share varies by a few MiB.
      EXPECT_GE(used_before_, 0) << "nvidia-smi reports no memory use";
      EXPECT_TRUE(await([&] { return gpu_memory_used() <= used_before_ + 8; }))
          << gpu_memory_used() << " MiB of GPU memory are in use, " << used_before_ << " MiB were in use before";
    }
    munmap(counts_, sizeof(Counts));
    close(descriptor_);
  }
  bool on_gpu() const { return device_ != "cpu"; }
  void start_daemon(Words more = {}) {
    Words words{"store", "serve", "--socket", socket(), "--memory", std::to_string(memory_), "--device", device_};
    if (on_gpu()) words.insert(words.end(), {"--share", from_environment("FEEDRATE_STORE_SHARE", "vmm")});
    words.insert(words.end(), more.begin(), more.end());
    daemon_ = place_.start(words);
    ASSERT_TRUE(await([&] { return daemon_->err().find(" at " + socket()) != std::string::npos; })) << daemon_->err();
  }
  /// Each client is a new instance of this executable, because a process forked from a CUDA process cannot use the GPU.
  void start_clients() {
    while (clients_.size() < setting("FEEDRATE_STORE_CLIENTS", 4)) {
      const std::string client = socket() + " " + std::to_string(seed_++) + " " + std::to_string(descriptor_);
      const pid_t child = fork();
      if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        setenv("FEEDRATE_SOAK_CLIENT", client.c_str(), 1);
        execl("/proc/self/exe", "test_cli", "--gtest_filter=StoreSoakClient.*", "--gtest_brief=1", nullptr);
        _exit(127);
      }
      clients_.push_back(child);
    }
  }
  /// Kills a client. A client that has already exited has failed.
  static void end(pid_t child) {
    int status = 0;
    ::kill(child, SIGKILL);
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << "a client ended with status " << status;
  }
  void tell() const {
    std::printf("made %lu, read %lu, deleted %lu, out of memory %lu, wrong %lu", counts_->made.load(),
                counts_->read.load(), counts_->deleted.load(), counts_->full.load(), counts_->wrong.load());
    if (on_gpu()) std::printf("; %ld MiB of the GPU are used", gpu_memory_used());
    std::printf("\n");
    std::fflush(stdout);
  }
  void tell_killed(unsigned kills, const char* what) {
    std::printf("%u %s were killed, %u clients at a time: %s\n", kills, what, setting("FEEDRATE_STORE_CLIENTS", 4),
                provenance(place_, device_).dump().c_str());
    std::fflush(stdout);
  }
  void end_clients() {
    for (const pid_t child : std::exchange(clients_, {})) end(child);
  }
  Json status(Store& store) { return Json::parse(store.status()); }
  std::string socket() const { return place_ / "s"; }

  Workplace place_;
  std::unique_ptr<Process> daemon_;
  long used_before_ = 0;
  std::vector<pid_t> clients_;
  unsigned seed_ = 1;
  const std::string device_ = from_environment("FEEDRATE_TEST_DEVICE", "cpu");
  static constexpr std::size_t memory_ = std::size_t{48} << 20;
  // Shared with the clients, which inherit the descriptor.
  const int descriptor_ = memfd_create("counts", 0);
  const int sized_ = ftruncate(descriptor_, sizeof(Counts));
  Counts* const counts_ = map_counts(descriptor_);  // starts with zeros
};

TEST(StoreSoakClient, ClientWorksUntilItIsKilled) {
  const char* const given = std::getenv("FEEDRATE_SOAK_CLIENT");
  if (given == nullptr) GTEST_SKIP() << "a helper process of StoreSoak";
  std::istringstream words(given);
  std::string socket;
  unsigned seed = 0;
  int descriptor = -1;
  words >> socket >> seed >> descriptor;
  Counts* const counts = map_counts(descriptor);
  ASSERT_NE(counts, nullptr);
  work(socket, seed, *counts);
}

TEST_F(StoreSoak, KilledClientsLeaveNoLeasesOrMemory) {
  start_daemon();
  start_clients();
  Store store(socket());
  std::mt19937 random(7);
  const unsigned kills = setting("FEEDRATE_STORE_KILLS", 20);
  std::vector<double> until_known;
  // The store counts a client only once it has connected.
  const auto all_there = [&] { return status(store).at("clients") == clients_.size() + 1; };
  ASSERT_TRUE(await(all_there));
  for (unsigned i = 0; i < kills; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 60));
    std::swap(clients_[random() % clients_.size()], clients_.back());
    const std::uint64_t before = status(store).at("clients");
    const auto killed = std::chrono::steady_clock::now();
    end(clients_.back());
    clients_.pop_back();
    ASSERT_TRUE(await([&] { return status(store).at("clients") < before; }));
    until_known.push_back(Seconds(std::chrono::steady_clock::now() - killed).count());
    start_clients();
    ASSERT_TRUE(await(all_there));
  }
  tell_killed(kills, "clients");
  std::ranges::sort(until_known);
  EXPECT_LT(until_known[until_known.size() * 9 / 10], 1)
      << "at most one client in ten may wait for a core of a busy machine";
  // A phase without kills follows, in which memory use must stay flat.
  const auto begin = std::chrono::steady_clock::now();
  const Seconds all(setting("FEEDRATE_STORE_SECONDS", 1));
  Seconds told(60);
  for (Seconds past(0); past < all; past = std::chrono::steady_clock::now() - begin) {
    if (past > told) {  // progress, in case the run is cut off
      std::printf("after %.0f s: ", told.count());
      tell();
      told += Seconds(60);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_LE(status(store).at("chunk_bytes"), memory_);
  }
  end_clients();
  ASSERT_TRUE(await([&] { return status(store).at("clients") == 1; }));
  Json found = status(store);
  EXPECT_EQ(found.at("leases"), 0) << found;
  EXPECT_EQ(found.at("deleted"), 0) << found;
  store.evict();
  found = status(store);
  EXPECT_EQ(found.at("tensor_bytes"), 0) << found;
  EXPECT_LE(found.at("chunks"), 1) << found;
  EXPECT_EQ(counts_->wrong, 0u);
  EXPECT_GT(counts_->made, 0u);
  EXPECT_GT(counts_->read, 0u);
  std::printf("a death is detected after at most %.1f ms; ", 1e3 * until_known.back());
  tell();
}

TEST_F(StoreSoak, ClientsContinueAfterDaemonIsKilled) {
  std::mt19937 random(9);
  const unsigned kills = setting("FEEDRATE_STORE_KILLS", 20) / 10 + 1;
  start_daemon();
  start_clients();
  for (unsigned i = 0; i < kills; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50 + random() % 100));
    daemon_->signal(SIGKILL);
    daemon_->wait();
    const std::uint64_t made = counts_->made;
    start_daemon();
    ASSERT_TRUE(await([&] { return counts_->made > made + 10; })) << "clients must continue with the new daemon";
  }
  tell_killed(kills, "daemons");
  end_clients();
  EXPECT_EQ(counts_->wrong, 0u);
}

TEST_F(StoreSoak, StoreContinuesWhileRedisIsKilled) {
  FEEDRATE_NEEDS_REDIS();
  RedisServer server;
  start_daemon({"--redis", server.url(), "--prefix", "p"});
  start_clients();
  std::mt19937 random(11);
  const unsigned kills = setting("FEEDRATE_STORE_KILLS", 20) / 10 + 1;
  for (unsigned i = 0; i < kills; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50 + random() % 100));
    const std::uint64_t made = counts_->made;
    server.process().signal(SIGKILL);
    server.process().wait();
    ASSERT_TRUE(await([&] { return counts_->made > made + 10; })) << "clients must not wait for the Redis server";
    server.kill_and_start();
  }
  tell_killed(kills, "Redis servers");
  end_clients();
  Store store(socket());
  const auto same = [&] {
    const auto all = store.list();
    if (server.integer({"SCARD", "p:tensors"}) != static_cast<long long>(all.size())) return false;
    return std::ranges::all_of(all, [&](const auto& about) {
      const Reply found = server.command({"HMGET", "p:tensor:" + about.name, "generation", "refcount"});
      return found->elements == 2 && found->element[0]->str != nullptr &&
             found->element[0]->str == std::to_string(about.generation) &&
             found->element[1]->str == std::to_string(about.leases);
    });
  };
  EXPECT_TRUE(await(same)) << "the mirror must match the table again";
  EXPECT_EQ(counts_->wrong, 0u);
}

}  // namespace
}  // namespace feedrate::cli_test
