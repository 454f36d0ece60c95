// A daemon with clients in threads and processes: memory is shared, leases end with their process, and reads are never
// torn.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <functional>
#include <future>
#include <limits>
#include <nlohmann/json.hpp>
#include <thread>

#include "feedrate/tensors.hpp"
#include "libraries/tensors/store/daemon.hpp"
#include "tests/libraries/tensors/sizes.hpp"
#include "tests/support/temp_dir.hpp"

namespace feedrate::tensors {
namespace {

using namespace std::chrono_literals;
using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;

/// A temporary folder for a socket.
class Folder : public test::TempDir {
 public:
  std::string socket() const { return *this / "s"; }
};

class RunningDaemon {
 public:
  explicit RunningDaemon(DaemonOptions options) : daemon_(*memory_, std::move(options)) {}
  Daemon& operator*() { return daemon_; }

 private:
  std::unique_ptr<ChunkMemory> memory_ = memfd_memory();
  Daemon daemon_;
  std::jthread thread_{[this](const std::stop_token& stop) { daemon_.run(stop); }};
};

/// A child process that runs `work` and then exits, unless it is killed first. It must not use anything that the parent
/// has open.
class Child {
 public:
  explicit Child(const std::function<void()>& work) : pid_(fork()) {
    if (pid_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    try {
      work();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "child: %s\n", error.what());
      _exit(1);
    }
    _exit(0);
  }
  ~Child() { kill_and_wait(); }
  void kill_and_wait() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    wait();
  }
  int wait() {
    int status = 0;
    waitpid(std::exchange(pid_, -1), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  pid_t pid_;
};

bool await(const std::function<bool()>& condition, std::chrono::milliseconds limit = 20s) {
  const auto deadline = Clock::now() + limit;
  while (!condition()) {
    if (Clock::now() > deadline) return false;
    std::this_thread::sleep_for(1ms);
  }
  return true;
}

class StoreTest : public testing::Test {
 protected:
  static DaemonOptions options(const std::string& socket) {
    DaemonOptions how{.socket = socket};
    how.memory = 256 * kMi;
    how.connections = 16;
    return how;
  }
  Json status() { return Json::parse(store_.status()); }
  std::int64_t leases_of(const std::string& name) { return static_cast<std::int64_t>(store_.stat(name).leases); }

  Folder folder_;
  RunningDaemon daemon_{options(folder_.socket())};
  Store store_{folder_.socket()};
};

TEST_F(StoreTest, AnotherProcessSeesTheSameMemory) {
  Tensor mine = store_.create("x", {Dtype::u32, {1000}, {}});
  ASSERT_NE(mine.data(), nullptr);
  std::memset(mine.data(), 0x11, mine.bytes());
  Child child([&] {
    Store store(folder_.socket());
    Tensor tensor = store.get("x");
    auto* const words = static_cast<std::uint32_t*>(tensor.data());
    if (words[999] != 0x11111111) throw std::runtime_error("the parent's write is not visible");
    words[0] = 7;
    tensor.publish();
  });
  EXPECT_TRUE(mine.wait_for(1, 20s));
  EXPECT_EQ(static_cast<std::uint32_t*>(mine.data())[0], 7u);
  EXPECT_EQ(child.wait(), 0);
}

TEST_F(StoreTest, TensorsOutliveTheirCreators) {
  Child child([&] {
    Store store(folder_.socket());
    Tensor small = store.create("small", {Dtype::u8, {100}, {}});
    Tensor large = store.create("large", {Dtype::u8, {20 * kMi}, {}});
    std::memset(small.data(), 1, small.bytes());
    std::memset(large.data(), 2, large.bytes());
  });
  ASSERT_EQ(child.wait(), 0);
  EXPECT_EQ(static_cast<std::uint8_t*>(store_.get("small").data())[99], 1);
  EXPECT_EQ(static_cast<std::uint8_t*>(store_.get("large").data())[20 * kMi - 1], 2);
}

TEST_F(StoreTest, ReadersOfAReplacedNameAlwaysFindACompleteTensor) {
  const Layout layout{Dtype::u32, {100'000}, {}};
  const auto put = [&](Store& store, std::uint32_t value) {
    Tensor next = store.stage("w", layout, {.replace = true});
    std::fill_n(static_cast<std::uint32_t*>(next.data()), 100'000, value);
    next.publish();
    next.commit();
  };
  put(store_, 0);
  std::atomic<bool> done = false;
  std::atomic<int> torn = 0, reads = 0;
  std::jthread reader([&] {
    Store store(folder_.socket());
    for (std::uint32_t last = 0; !done; ++reads) {
      const Tensor found = store.get("w");  // NotFound would fail the test
      const std::span values(static_cast<const std::uint32_t*>(found.data()), 100'000);
      torn += found.version() != 1 || values.front() < last || values.front() != values.back() ? 1 : 0;
      last = values.front();
    }
  });
  for (std::uint32_t value = 1; value <= 100; ++value) put(store_, value);
  EXPECT_TRUE(await([&] { return reads > 0; }));
  done = true;
  reader.join();
  EXPECT_EQ(torn, 0);
  EXPECT_EQ(*static_cast<const std::uint32_t*>(store_.get("w").data()), 100u);
}

TEST_F(StoreTest, WriterThatDiesBeforeItsCommitLeavesTheOldTensor) {
  const Tensor old = store_.create("w", {Dtype::u8, {100}, {}});
  Child child([&] {
    Store store(folder_.socket());
    const Tensor staged = store.stage("w", {Dtype::u8, {20 * kMi}, {}}, {.replace = true});
    Tensor ready = store.create("ready", {Dtype::u8, {1}, {}});
    pause();
  });
  store_.wait("ready", 20s);
  EXPECT_EQ(status().at("staged"), 1);
  child.kill_and_wait();
  EXPECT_TRUE(await([&] { return status().at("staged") == 0; }));
  EXPECT_EQ(store_.get("w").generation(), old.generation());
  EXPECT_FALSE(old.deleted());
}

TEST_F(StoreTest, CommitFailsOnceItsDaemonIsGone) {
  std::optional<RunningDaemon> other(options(folder_ / "other"));
  Store store(folder_ / "other");
  const Tensor staged = store.stage("w", {Dtype::u8, {1}, {}});
  other.reset();
  other.emplace(options(folder_ / "other"));
  EXPECT_THROW(staged.commit(), Unreachable);
  EXPECT_THROW(store.get("w"), NotFound) << "the new daemon does not know the tensor";
}

TEST_F(StoreTest, LeasesOfAKilledProcessEndWithinASecond) {
  store_.create("x", {Dtype::u8, {8 * kMi}, {}});
  std::vector<Clock::duration> until_free;
  for (int round = 0; round < 5; ++round) {
    Child child([&] {
      Store store(folder_.socket());
      const Tensor held = store.get("x");
      const Tensor own = store.create("own", {Dtype::u8, {16 * kMi}, {}});
      store.remove("own");
      pause();
    });
    ASSERT_TRUE(await([&] { return status().at("deleted") == 1 && leases_of("x") == 1; }));
    const auto killed = Clock::now();
    child.kill_and_wait();
    ASSERT_TRUE(await([&] { return leases_of("x") == 0 && status().at("deleted") == 0; }));
    until_free.push_back(Clock::now() - killed);
  }
  EXPECT_LT(*std::ranges::min_element(until_free), 1s) << "on a busy machine some rounds may take longer";
  EXPECT_EQ(status().at("chunk_bytes"), 8 * kMi) << "all memory that they held must be free";
}

TEST_F(StoreTest, SuspendedProcessKeepsItsLeases) {
  store_.create("x", {Dtype::u8, {10}, {}});
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  Child child([&] {
    Store store(folder_.socket());
    const Tensor held = store.get("x");
    if (write(ready[1], "r", 1) != 1) throw std::runtime_error("write");
    kill(getpid(), SIGSTOP);
    pause();
  });
  close(ready[1]);
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  close(ready[0]);
  std::this_thread::sleep_for(700ms);
  EXPECT_EQ(leases_of("x"), 1) << "the process may continue";
  child.kill_and_wait();
  EXPECT_TRUE(await([&] { return leases_of("x") == 0; }));
}

TEST_F(StoreTest, ForkedCopyNeitherHoldsNorEndsALease) {
  store_.create("x", {Dtype::u8, {10}, {}});
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  Child parent([&] {
    Store store(folder_.socket());
    std::optional<Tensor> held = store.get("x");
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);  // so that the copy does not outlive the test for long
      try {
        store.get("x");
        _exit(2);
      } catch (const Failure&) {
      }
      held.reset();  // the copy must not end the parent's lease
      const pid_t own = getpid();
      if (write(ready[1], &own, sizeof own) != sizeof own) _exit(3);
      pause();  // keeps the parent's socket open
    }
    pause();
  });
  close(ready[1]);
  pid_t copy = 0;
  ASSERT_EQ(read(ready[0], &copy, sizeof copy), static_cast<ssize_t>(sizeof copy)) << "the copy was given a lease";
  close(ready[0]);
  std::this_thread::sleep_for(100ms);
  EXPECT_EQ(leases_of("x"), 1) << "the copy must not end the lease";
  parent.kill_and_wait();
  EXPECT_TRUE(await([&] { return leases_of("x") == 0; })) << "even though the copy keeps the socket open";
  EXPECT_EQ(kill(copy, SIGKILL), 0) << "the copy must still be running";
}

TEST_F(StoreTest, SecondGetReturnsTheSameLease) {
  const Tensor first = store_.create("x", {Dtype::f32, {10}, {}});
  const Tensor second = store_.get("x");
  EXPECT_EQ(second.data(), first.data());
  EXPECT_EQ(leases_of("x"), 1);
  store_.remove("x");
  EXPECT_TRUE(first.deleted());
  EXPECT_THROW(store_.get("x"), NotFound) << "even though this process still holds it";
  const Tensor later = store_.create("x", {Dtype::f32, {10}, {}});
  EXPECT_NE(later.generation(), first.generation());
  EXPECT_EQ(store_.get("x").generation(), later.generation());
}

TEST_F(StoreTest, InvalidTimeToLiveIsRejected) {
  for (const double no_time : {0.0, -1.0, 1e300, std::numeric_limits<double>::infinity(), std::nan("")}) {
    EXPECT_THROW(store_.create("x", {Dtype::u8, {10}, {}}, {.ttl_seconds = no_time}), BadInput) << no_time;
  }
  EXPECT_TRUE(store_.list().empty());
}

TEST_F(StoreTest, LeaseLastsUntilItsLastCopyIsGone) {
  Tensor copy;
  {
    const Tensor first = store_.create("x", {Dtype::u8, {10 * kMi}, {}});
    copy = first;
  }
  store_.remove("x");
  static_cast<char*>(copy.data())[10 * kMi - 1] = 1;
  EXPECT_EQ(status().at("deleted"), 1);
  copy = {};
  EXPECT_TRUE(await([&] { return status().at("deleted") == 0; }));
  EXPECT_EQ(status().at("chunk_bytes"), 0);
}

TEST_F(StoreTest, EveryShapeCanBeStored) {
  const Tensor scalar = store_.create("scalar", {Dtype::f64, {}, {}}),
               none = store_.create("none", {Dtype::f64, {0, 3}, {}}),
               strided = store_.create("strided", {Dtype::e4m3, {2, 3}, {8, 1}});
  EXPECT_EQ(scalar.bytes(), 8u);
  EXPECT_EQ(none.data(), nullptr);
  none.words().done = 5;  // an empty tensor still has its words
  EXPECT_EQ(store_.stat("strided").layout, strided.layout());
  EXPECT_THROW(store_.create("scalar", {Dtype::f64, {}, {}}), AlreadyExists);
  EXPECT_EQ(store_.list().size(), 3u);
}

TEST_F(StoreTest, WaitEndsWithTheTensorOrTheTimeout) {
  EXPECT_THROW(store_.wait("late", 50ms), TimedOut);
  std::jthread maker([&] {
    Store store(folder_.socket());
    std::this_thread::sleep_for(50ms);
    store.create("late", {Dtype::u8, {1}, {}});
  });
  EXPECT_EQ(store_.wait("late", 20s).name(), "late");
  const Tensor tensor = store_.get("late");
  EXPECT_FALSE(tensor.wait_for(1, 20ms));
}

TEST_F(StoreTest, HalvesAreNeverReadTorn) {
  constexpr std::size_t kWords = 3000;
  store_.create("x", {Dtype::u64, {2, kWords}, {}});
  Tensor enough = store_.create("enough", {Dtype::u8, {1}, {}});
  Child writer([&] {
    Store store(folder_.socket());
    Tensor tensor = store.get("x");
    const Tensor stop = store.get("enough");
    for (std::uint64_t version = 1; stop.version() == 0; ++version) {
      auto* const words = reinterpret_cast<std::uint64_t*>(tensor.begin_half().data());
      std::fill(words, words + kWords, version);
      tensor.publish();
    }
  });
  const Tensor tensor = store_.get("x");
  std::vector<std::uint64_t> words(kWords);
  std::uint64_t last = 0;
  const auto deadline = Clock::now() + 60s;
  for (int seen = 0; seen < 300 && Clock::now() < deadline;) {
    const std::uint64_t version = tensor.read_half(std::as_writable_bytes(std::span(words)));
    ASSERT_GE(version, last);
    ASSERT_TRUE(std::ranges::all_of(words, [&](std::uint64_t word) { return word == version; }))
        << "torn at " << version;
    seen += version != last ? 1 : 0;
    last = version;
  }
  EXPECT_GE(last, 300u);
  enough.publish();
  EXPECT_EQ(writer.wait(), 0);
  store_.seal("x");
  EXPECT_TRUE(tensor.sealed());
  EXPECT_THROW(Tensor(tensor).begin_half(), BadInput);
}

TEST_F(StoreTest, ThreadsShareAStore) {
  std::vector<std::jthread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 100; ++i) {
        const std::string name = "t" + std::to_string((t + i) % 5);
        try {
          Tensor tensor = i % 2 == 0 ? store_.create(name, {Dtype::u8, {i % 3 == 0 ? std::int64_t{5 << 20} : 100}, {}})
                                     : store_.get(name);
          static_cast<std::atomic<char>*>(tensor.data())->fetch_add(1);
          if (i % 3 == 2) store_.remove(name);
        } catch (const AlreadyExists&) {
        } catch (const NotFound&) {
        } catch (const std::exception& error) {
          ++wrong;
          ADD_FAILURE() << error.what();
        }
      }
    });
  }
  threads.clear();
  EXPECT_EQ(wrong, 0);
  EXPECT_TRUE(await([&] { return status().at("leases") == 0; }));
}

TEST_F(StoreTest, SocketIsPrivateToItsUser) {
  struct stat found {};
  ASSERT_EQ(::stat(folder_.socket().c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777, 0600u);
  EXPECT_THROW(RunningDaemon{options(folder_.socket())}, BadInput) << "another daemon already listens there";
}

TEST(StoreSocket, SocketOfARunningProgramIsNotReplaced) {
  const Folder folder;
  const Descriptor other(socket(AF_UNIX, SOCK_STREAM, 0));  // a stream socket, like Redis's
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  folder.socket().copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(bind(other.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(listen(other.get(), 1), 0);
  EXPECT_THROW(listen_at(folder.socket(), {}), BadInput);
  EXPECT_TRUE(std::filesystem::exists(folder.socket()));
}

TEST(StoreSocket, SocketListensAsSoonAsItAppears) {
  for (int turn = 0; turn < 1000; ++turn) {
    const Folder folder;
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    folder.socket().copy(address.sun_path, sizeof address.sun_path - 1);
    const Descriptor client(socket(AF_UNIX, SOCK_SEQPACKET, 0));
    auto error = std::async(std::launch::async, [&] {
      while (connect(client.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
        if (errno != ENOENT) return errno;
      }
      return 0;
    });
    const Descriptor listener = listen_at(folder.socket(), {});
    ASSERT_EQ(error.get(), 0) << turn;
  }
}

TEST(StoreSocket, SocketIsTrustedOnlyIfThePathsOwnerListens) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  constexpr uid_t kOther = 65534;
  const Folder folder;
  const std::string where = std::filesystem::path(folder.socket()).parent_path();
  ASSERT_EQ(chmod(where.c_str(), 01777), 0);
  Child listener([&] {
    if (setuid(kOther) != 0) throw std::runtime_error("setuid");
    const Descriptor socket = listen_at(folder.socket(), {});
    while (true) pause();
  });
  // Root may connect to any socket; the check depends only on the user of the process that answers.
  std::string said;
  ASSERT_TRUE(await([&] {
    try {
      connect_to(folder.socket());
      return true;
    } catch (const Unreachable& refused) {
      said = refused.what();
      return said.find("belongs to user 65534") != std::string::npos;
    }
  }));
  EXPECT_NE(said.find("nor the owner of " + where), std::string::npos) << said;
  ASSERT_EQ(chown(where.c_str(), kOther, kOther), 0);
  EXPECT_NO_THROW(connect_to(folder.socket()));
}

TEST_F(StoreTest, HostilePacketsDoNoHarm) {
  const Descriptor socket = connect_to(folder_.socket());
  Packet packet;
  const auto ask = [&](const std::string& text, std::span<const int> descriptors = {}) {
    EXPECT_EQ(send_packet(socket.get(), text, descriptors, 1s), Sent::yes);
    EXPECT_EQ(await_packet(socket.get(), packet, 1, 20s), Received::packet);
    return Json::parse(packet.text);
  };
  EXPECT_EQ(ask("no JSON").at("error"), "bad_request");
  EXPECT_EQ(ask(std::string(100'000, 'x')).at("error"), "bad_request");
  EXPECT_EQ(ask(std::string("\0\1\2", 3)).at("error"), "bad_request");
  EXPECT_EQ(ask(R"({"op":"get","name":"../../etc/passwd"})").at("error"), "not_found");
  EXPECT_EQ(ask(R"({"op":"create","name":"x","dtype":"u8","shape":[4611686018427387904]})").at("error"),
            "out_of_memory");
  // The daemon does not keep descriptors that a client sends: the other end of this pipe sees them closed.
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  EXPECT_TRUE(ask(R"({"op":"status"})", std::array{ends[1]}).at("ok"));
  close(ends[1]);
  char byte = 0;
  EXPECT_EQ(read(ends[0], &byte, 1), 0);
  close(ends[0]);
  // A client cannot release another client's lease.
  const Tensor mine = store_.create("mine", {Dtype::u8, {1}, {}});
  EXPECT_EQ(send_packet(socket.get(), R"({"op":"release","lease":1})", {}, 1s), Sent::yes);
  EXPECT_TRUE(ask(R"({"op":"status"})").at("ok"));
  EXPECT_EQ(leases_of("mine"), 1);
}

TEST_F(StoreTest, ConnectionsAreLimited) {
  std::vector<Descriptor> held;
  for (int i = 0; i < 15; ++i) held.push_back(connect_to(folder_.socket()));
  EXPECT_TRUE(await([&] { return status().at("clients") == 16; }));
  const Descriptor one_more = connect_to(folder_.socket());
  Packet packet;
  ASSERT_EQ(await_packet(one_more.get(), packet, 0, 20s), Received::packet);
  EXPECT_EQ(Json::parse(packet.text).at("error"), "limit");
  EXPECT_EQ(await_packet(one_more.get(), packet, 0, 20s), Received::gone);
  EXPECT_THROW(Store{folder_.socket()}, LimitReached) << "the client reports the reason";
  held.clear();
  EXPECT_TRUE(await([&] { return status().at("clients") == 1; }));
}

TEST_F(StoreTest, SlowClientDoesNotBlockOthers) {
  const Descriptor socket = connect_to(folder_.socket());
  for (int i = 0; i < 2000; ++i) send_packet(socket.get(), R"({"op":"status"})", {});
  const auto begin = Clock::now();
  for (int i = 0; i < 20; ++i) EXPECT_EQ(status().at("device"), "cpu");
  EXPECT_LT(Clock::now() - begin, 5s);
}

TEST(StoreLife, MappedMemorySurvivesTheDaemonsEnd) {
  Folder folder;
  std::optional<RunningDaemon> daemon;
  DaemonOptions how{.socket = folder.socket()};
  daemon.emplace(how);
  Store store(folder.socket(), {.patience = 2s});
  Tensor held = store.create("x", {Dtype::u32, {100}, {}});
  static_cast<std::uint32_t*>(held.data())[0] = 5;
  daemon.reset();
  EXPECT_THROW(store.create("y", {Dtype::u8, {1}, {}}), Unreachable);
  EXPECT_THROW(store.get("x"), Unreachable);
  static_cast<std::uint32_t*>(held.data())[1] = 6;
  held.publish();
  EXPECT_EQ(held.version(), 1u);
  daemon.emplace(how);
  EXPECT_THROW(store.get("x"), NotFound) << "the new daemon has none of the old daemon's tensors";
  const Tensor again = store.create("x", {Dtype::u32, {100}, {}});
  EXPECT_EQ(static_cast<std::uint32_t*>(again.data())[0], 0u);
  EXPECT_EQ(static_cast<std::uint32_t*>(held.data())[0], 5u);
}

TEST(StoreLife, SocketOfADeadDaemonIsReplaced) {
  Folder folder;
  Child child([&] {
    const auto memory = memfd_memory();
    Daemon daemon(*memory, {.socket = folder.socket()});
    kill(getpid(), SIGKILL);
  });
  child.wait();
  ASSERT_TRUE(std::filesystem::exists(folder.socket()));
  EXPECT_THROW(Store{folder.socket()}, Unreachable);
  RunningDaemon daemon({.socket = folder.socket()});
  EXPECT_NO_THROW(Store{folder.socket()});
}

}  // namespace
}  // namespace feedrate::tensors
