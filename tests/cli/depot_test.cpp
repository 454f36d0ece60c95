#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstring>

#include "common/socket_folder.hpp"
#include "tests/cli/feedrate_process.hpp"

/// The broker in tests/example/depot_broker.cpp, to which no other file refers. It contains every kind of addition that
/// a single file can make.
namespace feedrate::cli_test {
namespace {

struct DepotTest : ::testing::Test {
  DepotTest() { place_.read_limits(); }
  std::unique_ptr<Process> serve() {
    auto server = place_.start({"helper", "depot", socket_});
    EXPECT_TRUE(await([&] { return listens(socket_); })) << server->err();
    return server;
  }
  std::unique_ptr<Process> work() {
    auto worker =
        place_.start({"worker", "--queue", "depot", "--depot", socket_, "--depot-take", "4", "--device", "cpu"});
    EXPECT_TRUE(await([&] { return worker->err().find("from the depot") != std::string::npos; })) << worker->err();
    return worker;
  }
  Words load(const std::string& messages) const {
    return {"run", "--queue",           "depot",   "--depot",  socket_,  "--device",
            "cpu", "--external-worker", "--batch", "16",       "--json", "--seconds",
            "0",   "--messages",        messages,  "--warmup", "0"};
  }
  Workplace place_{with_additions()};
  std::string socket_ = place_ / "depot.sock";
};

TEST_F(DepotTest, PrivateServerAddsItsLimitsAndIsRecordedInTheRow) {
  const Outcome run = place_.run({"run", "--queue", "depot", "--device", "cpu", "--depot-take", "8", "--messages",
                                  "2000", "--seconds", "0", "--json"});
  ASSERT_EQ(run.code, 0) << run.err;
  const auto rows = rows_of(run.out);
  EXPECT_EQ(rows[0]["environment"]["services"]["depot"]["socket"], "private unix socket");
  EXPECT_GT(rows[0]["limits"]["depot_round_trip_ns"], 0);
  const Json& row = rows.back();
  EXPECT_NE(row["status"], "failed") << row["reason"];
  EXPECT_EQ(row["params"]["depot_take"], 8);
  EXPECT_EQ(row["cost"]["delivery"], "at least once");
  EXPECT_EQ(row["details"]["counts"]["lost"], 0);
  EXPECT_TRUE(place_.temporary_empty()) << "the server left its socket";
  EXPECT_TRUE(processes_naming(place_.temporary()).empty()) << "the server still runs";
}

TEST_F(DepotTest, WorkerServesTheDepot) {
  const auto server = serve();
  const auto worker = work();
  const Outcome run = place_.run(load("3000"));
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(rows_of(run.out).back()["details"]["counts"]["lost"], 0);
  worker->signal(SIGTERM);
  EXPECT_EQ(worker->wait(), 0) << worker->err();
  EXPECT_NE(worker->err().find("3000 messages served"), std::string::npos) << worker->err();
}

TEST_F(DepotTest, TasksOfADisconnectedClientAreRedelivered) {
  const auto server = serve();
  const auto run = place_.start(load("1000"));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strcpy(address.sun_path, socket_.c_str());
  const int client = socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(connect(client, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  std::array<char, 64> take{1, 't', 'a', 's', 'k', 's'};
  take[56] = 4;  // elements
  std::array<std::uint32_t, 2> taken{};
  EXPECT_TRUE(await([&] {
    send(client, take.data(), take.size(), MSG_NOSIGNAL);
    return recv(client, taken.data(), sizeof taken, MSG_WAITALL) == sizeof taken && taken[0] > 0;
  })) << run->err();
  close(client);
  const auto worker = work();
  ASSERT_EQ(run->wait(), 0) << run->err();
  EXPECT_EQ(rows_of(run->out()).back()["details"]["counts"]["lost"], 0);
}

TEST_F(DepotTest, WorkerWaitsForServerToRestart) {
  auto server = serve();
  const auto worker = work();
  server->signal(SIGKILL);
  server->wait();
  EXPECT_TRUE(await([&] { return worker->err().find("retrying in") != std::string::npos; })) << worker->err();
  fs::remove(socket_);
  server = serve();
  const Outcome run = place_.run(load("100"));
  EXPECT_EQ(run.code, 0) << run.err;
}

TEST_F(DepotTest, OptionIsRejectedIfUnusedOrWithoutServer) {
  const Outcome run = place_.run({"run", "--queue", "null", "--device", "cpu", "--depot", socket_});
  EXPECT_EQ(run.code, 2);
  EXPECT_NE(run.err.find("--depot"), std::string::npos) << run.err;
  const Outcome worker = place_.run({"worker", "--queue", "depot"});
  EXPECT_EQ(worker.code, 2);
  EXPECT_NE(worker.err.find("--depot: invalid value ''"), std::string::npos) << worker.err;
  const Outcome absent = place_.run(load("1"));
  EXPECT_EQ(absent.code, 2);
  EXPECT_NE(absent.err.find("--depot: no usable server"), std::string::npos) << absent.err;
}

}  // namespace
}  // namespace feedrate::cli_test
