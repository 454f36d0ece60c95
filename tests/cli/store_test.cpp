// `feedrate store`: reading and writing files, the mirror in Redis, requests through its list, and the state after a
// process is killed.
#include <cstring>
#include <map>
#include <set>

#include "common/device/device.hpp"
#include "feedrate/tensors.hpp"
#include "libraries/tensors/memory.hpp"
#include "tests/cli/metrics.hpp"

namespace feedrate::cli_test {
namespace {

using tensors::Dtype;
using tensors::Store;
using tensors::Tensor;
using namespace std::chrono_literals;

class StoreCommand : public testing::Test {
 protected:
  std::unique_ptr<Process> serve(Words more = {}) {
    Words words{"store", "serve", "--socket", socket(), "--memory", "256Mi"};
    words.insert(words.end(), more.begin(), more.end());
    auto process = place_.start(words);
    EXPECT_TRUE(await([&] { return process->ended() || process->err().find(" at " + socket()) != std::string::npos; }))
        << process->err();
    return process;
  }
  Outcome store(const std::string& command, Words more = {}) {
    more.insert(more.begin(), {"store", command, "--socket", socket()});
    return place_.run(more);
  }
  std::string socket() const { return place_ / "s"; }

  Workplace place_;
};

TEST_F(StoreCommand, StoreReadsAndWritesNpyFiles) {
  const auto daemon = serve();
  const std::string header =
      "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }                                                   "
      "\n";
  std::string file = std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(header.size()) + '\0' + header;
  for (int i = 0; i < 6; ++i) {
    const auto value = static_cast<float>(i);
    file.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  const std::string in = place_.write("in.npy", file);
  Outcome outcome = store("put", {"weights", in, "--pin"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  outcome = store("stat", {"weights"});
  const Json about = Json::parse(outcome.out);
  EXPECT_EQ(about.at("shape"), Json({2, 3}));
  EXPECT_EQ(about.at("dtype"), "f32");
  EXPECT_TRUE(about.at("pinned"));
  EXPECT_EQ(store("get", {"weights", place_ / "out.npy"}).code, 0);
  const std::string out = read_text(place_ / "out.npy");
  EXPECT_EQ(out.substr(out.size() - 24), file.substr(file.size() - 24));
  EXPECT_NE(out.find("'shape': (2, 3), }"), out.npos);
  EXPECT_EQ(out.find('\n') % 64, 63u) << "elements start at a multiple of 64 bytes, as in NumPy's files";

  outcome = store("put", {"weights", in});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("'weights' exists"), outcome.err.npos) << outcome.err;
  EXPECT_EQ(store("put", {"weights", in, "--replace"}).code, 0);
  outcome = store("list", {"--json"});
  EXPECT_EQ(Json::parse(outcome.out).at("name"), "weights");
  EXPECT_EQ(store("gc").out, "256 bytes freed\n");
  EXPECT_EQ(store("list", {"--json"}).out, "");
  outcome = store("rm", {"weights"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("no tensor 'weights'"), outcome.err.npos) << outcome.err;
}

TEST_F(StoreCommand, FailedReplacementKeepsTheOldTensorAndTheOldFile) {
  const auto daemon = serve();
  const std::string header = "{'descr': '|u1', 'fortran_order': False, 'shape': (";
  const auto npy = [&](const std::string& name, std::size_t bytes) {
    std::string text = header + std::to_string(bytes) + ",), }\n";
    text = std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(text.size()) + '\0' + text;
    return place_.write(name, text + std::string(bytes, 'x'));
  };
  const std::string small = npy("small.npy", 100), big = npy("big.npy", 300 << 20), medium = npy("medium.npy", 1 << 20);
  ASSERT_EQ(store("put", {"w", small}).code, 0);
  Outcome outcome = store("put", {"w", big, "--replace"});
  EXPECT_EQ(outcome.code, 2) << "the store has 256 MiB";
  EXPECT_EQ(Json::parse(store("stat", {"w"}).out).at("bytes"), 100);

  ASSERT_EQ(store("get", {"w", place_ / "out.npy"}).code, 0);
  const std::string old = read_text(place_ / "out.npy");
  ASSERT_EQ(store("put", {"w", medium, "--replace"}).code, 0);
  Process cut({"/bin/sh", "-c", "trap '' XFSZ; ulimit -f 8; exec \"$0\" store get w out.npy --socket s", executable()},
              place_.path(), place_ / "cut");
  EXPECT_EQ(cut.wait(), 2);
  EXPECT_NE(cut.err().find("File too large"), std::string::npos) << cut.err();
  EXPECT_EQ(read_text(place_ / "out.npy"), old);
  EXPECT_EQ(store("get", {"w", place_ / "out.npy"}).code, 0);
  EXPECT_GT(fs::file_size(place_ / "out.npy"), 1u << 20);
  for (const auto& entry : fs::directory_iterator(place_.path())) {
    EXPECT_FALSE(entry.path().filename().string().ends_with(".partial")) << entry.path();
  }
}

TEST_F(StoreCommand, PipesWorkLikeFiles) {
  const auto daemon = serve();
  std::string text = "{'descr': '|u1', 'fortran_order': False, 'shape': (20,), }\n";
  text = std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(text.size()) + '\0' + text;
  place_.write("in.npy", text + "twenty bytes of text");
  Process piped(
      {"/bin/sh", "-c",
       "cat in.npy | \"$0\" store put w /dev/stdin --socket s && \"$0\" store get w /dev/stdout --socket s | cat",
       executable()},
      place_.path(), place_ / "piped");
  EXPECT_EQ(piped.wait(), 0) << piped.err();
  EXPECT_TRUE(piped.out().ends_with("twenty bytes of text")) << piped.out();
  Process cut({"/bin/sh", "-c", "head -c 80 in.npy | \"$0\" store put cut /dev/stdin --socket s", executable()},
              place_.path(), place_ / "cut");
  EXPECT_EQ(cut.wait(), 1);
  EXPECT_NE(cut.err().find("ended early or could not be read"), std::string::npos) << cut.err();
  EXPECT_EQ(store("stat", {"cut"}).code, 2) << "no partial tensor may be left";
}

TEST_F(StoreCommand, InvalidFilesAreRejected) {
  const auto daemon = serve();
  const auto file = [&](const std::string& header, const std::string& data = std::string(64, 'x')) {
    return place_.write("in.npy", std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(header.size() & 0xFF) +
                                      static_cast<char>(header.size() >> 8) + header + data);
  };
  const auto refused = [&](const std::string& path, const std::string& says, Words more = {}) {
    more.insert(more.begin(), {"x", path});
    const Outcome outcome = store("put", more);
    EXPECT_EQ(outcome.code, 2) << path;
    EXPECT_NE(outcome.err.find(says), outcome.err.npos) << outcome.err;
  };
  refused(place_ / "none.npy", "a readable file");
  refused(place_.write("in.npy", "hello"), "as NumPy writes it");
  refused(file("{'descr': '<f4', 'fortran_order': False, }"), "without descr, fortran_order and shape");
  refused(file("{'descr': '>f4', 'fortran_order': False, 'shape': (2,), }"), "specify the type with --dtype");
  refused(file("{'descr': '<f4', 'fortran_order': False, 'shape': (2"), "not a complete dict");
  refused(file("{'descr': '<f4', 'fortran_order': False, 'shape': (-2,), }"), "0 and more");
  refused(file("{'descr': '<f4', 'fortran_order': False, 'shape': (200,), }"), "800 bytes of elements; it has 64");
  refused(file("{'descr': '|V2', 'fortran_order': False, 'shape': (2,), }"), "which cannot hold f32",
          {"--dtype", "f32"});
  const Outcome outcome =
      store("put", {"x", file("{'descr': '|V2', 'fortran_order': True, 'shape': (2, 3), }"), "--dtype", "bf16"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(Json::parse(store("stat", {"x"}).out).at("strides"), Json({1, 2})) << "Fortran order";
}

TEST_F(StoreCommand, InvalidOptionsAreReported) {
  Outcome outcome = store("list");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("no store answers at " + socket()), outcome.err.npos) << outcome.err;
  EXPECT_NE(place_.run({"store", "list"}).err.find("--socket"), std::string::npos);
  outcome = place_.run({"store", "serve", "--socket", socket(), "--device", "gpu"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("--device: invalid value 'gpu'"), outcome.err.npos) << outcome.err;
  if (cuda_unavailable() == "no NVIDIA driver on this machine") {
    for (const char* share : {"vmm", "auto"}) {
      outcome = place_.run({"store", "serve", "--socket", socket(), "--device", "cuda:0", "--share", share});
      EXPECT_EQ(outcome.code, 2);
      EXPECT_NE(outcome.err.find("--device: invalid value 'cuda:0'; allowed: cpu (no NVIDIA driver on this machine)"),
                outcome.err.npos)
          << outcome.err;
    }
  }
  if (!tensors::gpu_ways().empty()) {
    outcome = place_.run({"store", "serve", "--socket", socket(), "--share", "loan"});
    EXPECT_EQ(outcome.code, 2);
    EXPECT_NE(outcome.err.find("--share: invalid value 'loan'; allowed: auto, vmm, pool, legacy"), outcome.err.npos)
        << outcome.err;
  }
  outcome = place_.run({"store", "serve", "--socket", socket(), "--group", "nobody's group"});
  EXPECT_NE(outcome.err.find("a group of this machine"), outcome.err.npos) << outcome.err;
  outcome = place_.run({"store", "serve", "--socket", place_.write("file", "x")});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(read_text(place_ / "file"), "x") << "a regular file must not be replaced as a stale socket";
  const auto daemon = serve();
  outcome = place_.run({"store", "serve", "--socket", socket()});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("no other daemon listens"), outcome.err.npos) << outcome.err;
}

TEST_F(StoreCommand, ParentOptionIsRejectedForOtherProcessesAndWithSupervise) {
  for (const Words& more :
       {Words{"--parent", std::to_string(getppid())}, Words{"--parent", std::to_string(getpid()), "--supervise"}}) {
    Words words{"store", "serve", "--socket", socket()};
    words.insert(words.end(), more.begin(), more.end());
    const Outcome outcome = place_.run(words);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_NE(outcome.err.find("--parent: invalid value '" + more[1] + "'"), outcome.err.npos) << outcome.err;
  }
}

TEST_F(StoreCommand, SignalEndsTheStoreCleanly) {
  const auto daemon = serve({"--log", "json"});
  Store store(socket());
  const Tensor held = store.create("x", {Dtype::u8, {100}, {}});
  daemon->signal(SIGTERM);
  EXPECT_EQ(daemon->wait(), 0);
  EXPECT_FALSE(fs::exists(socket()));
  static_cast<char*>(held.data())[99] = 1;
  for (const Json& line : rows_of(daemon->err())) EXPECT_EQ(line.at("level"), "info") << line;
}

TEST_F(StoreCommand, KilledStoreHarmsNoClientAndSupervisedStoreRestarts) {
  const auto daemon = serve({"--supervise"});
  for (int round = 0; round < 3; ++round) {
    Store store(socket());
    Tensor held = store.create("x", {Dtype::u32, {1 << 21}, {}});
    auto* const words = static_cast<std::uint32_t*>(held.data());
    words[0] = 0xABCD;
    for (const pid_t one : processes_naming(socket())) {
      if (one != daemon->id()) ::kill(one, SIGKILL);
    }
    EXPECT_EQ(words[0], 0xABCDu);
    words[(1 << 21) - 1] = 1;
    ASSERT_TRUE(await([&] {
      try {
        store.get("x");
        return false;
      } catch (const tensors::NotFound&) {
        return true;  // the new daemon has no tensors
      } catch (const tensors::Unreachable&) {
        return false;
      }
    }));
    EXPECT_EQ(words[0], 0xABCDu);
  }
  daemon->signal(SIGTERM);
  EXPECT_EQ(daemon->wait(), 0);
}

class StoreWithRedis : public StoreCommand {
 protected:
  void SetUp() override {
    FEEDRATE_NEEDS_REDIS();
    server_.emplace();
  }
  std::unique_ptr<Process> serve_mirrored(Words more = {}) {
    more.insert(more.begin(), {"--redis", server_->url(), "--prefix", "p"});
    return serve(more);
  }
  std::map<std::string, std::string> hash_of(const std::string& name) {
    std::map<std::string, std::string> fields;
    const Reply reply = server_->command({"HGETALL", "p:tensor:" + name});
    for (std::size_t i = 0; reply && i + 1 < reply->elements; i += 2) {
      fields[reply->element[i]->str] = reply->element[i + 1]->str;
    }
    return fields;
  }
  Json ask(const Json& request, const std::string& reply_to = "tensor_lifecycle:answers:1") {
    Json asked = request;
    asked["reply_to"] = reply_to;
    return ask_text(asked.dump(), reply_to);
  }
  Json ask_text(const std::string& text, const std::string& reply_to = "tensor_lifecycle:answers:1") {
    server_->command({"RPUSH", "tensor_lifecycle", text});
    const Reply reply = server_->command({"BLPOP", reply_to, "20"});
    return reply && reply->elements == 2 ? Json::parse(reply->element[1]->str) : Json();
  }
  std::optional<RedisServer> server_;
};

TEST_F(StoreWithRedis, MirrorFollowsTheTable) {
  const auto daemon = serve_mirrored();
  Store store(socket());
  Tensor held = store.create("w", {Dtype::f16, {4, 5}, {}});
  ASSERT_TRUE(await([&] { return hash_of("w")["refcount"] == "1"; }));
  auto fields = hash_of("w");
  EXPECT_EQ(fields["dtype"], "f16");
  EXPECT_EQ(fields["shape"], "[4,5]");
  EXPECT_EQ(fields["bytes"], "40");
  EXPECT_EQ(fields["device"], "cpu");
  EXPECT_EQ(fields["state"], "live");
  EXPECT_EQ(fields["generation"], std::to_string(held.generation()));
  EXPECT_TRUE(fields["ipc_handle"].starts_with("memfd:"));
  for (const char* field : {"ctime", "node", "offset", "strides"}) EXPECT_TRUE(fields.contains(field)) << field;
  EXPECT_EQ(server_->integer({"SISMEMBER", "p:tensors", "w"}), 1);
  store.seal("w");
  held = {};
  ASSERT_TRUE(await([&] { return hash_of("w")["refcount"] == "0" && hash_of("w")["state"] == "sealed"; }));
  store.remove("w");
  ASSERT_TRUE(await([&] { return server_->integer({"EXISTS", "p:tensor:w"}) == 0; }));
  EXPECT_EQ(server_->integer({"SCARD", "p:tensors"}), 0);
  daemon->signal(SIGTERM);
  EXPECT_EQ(daemon->wait(), 0);
  EXPECT_EQ(server_->integer({"DBSIZE"}), 0) << "a store that exits must leave no keys";
}

TEST_F(StoreWithRedis, PrefixBelongsToOneStore) {
  const auto first = serve_mirrored();
  Store store(socket());
  store.create("w", {Dtype::u8, {1}, {}});
  ASSERT_TRUE(await([&] { return server_->integer({"EXISTS", "p:tensor:w"}) == 1; }));
  const Words second{"store", "serve",   "--socket",     place_ / "second", "--memory",
                     "64Mi",  "--redis", server_->url(), "--prefix",        "p"};
  const Outcome refused = place_.run(second);
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(refused.err.find("--prefix: invalid value 'p'"), std::string::npos) << refused.err;
  EXPECT_NE(refused.err.find(socket()), std::string::npos) << refused.err;
  EXPECT_EQ(server_->integer({"EXISTS", "p:tensor:w"}), 1);
  // Any store may take over the keys of a dead store.
  first->signal(SIGKILL);
  first->wait();
  const auto heir = place_.start(second);
  EXPECT_TRUE(await([&] { return server_->integer({"EXISTS", "p:tensor:w"}) == 0; })) << heir->err();
  EXPECT_FALSE(heir->ended()) << heir->err();
}

TEST_F(StoreWithRedis, OneOfSeveralStoresStartedAtOnceGetsThePrefix) {
  for (int round = 0; round < 5; ++round) {
    std::vector<std::unique_ptr<Process>> stores;
    for (const char* name : {"a", "b", "c"}) {
      stores.push_back(place_.start({"store", "serve", "--socket", place_ / name, "--memory", "64Mi", "--redis",
                                     server_->url(), "--prefix", "at-once"}));
    }
    EXPECT_TRUE(await([&] { return std::ranges::count_if(stores, &Process::ended) == 2; }));
    for (const auto& one : stores) {
      if (!one->ended()) {
        one->signal(SIGTERM);
        EXPECT_EQ(one->wait(), 0);
      } else {
        EXPECT_EQ(one->wait(), 2) << one->err();
        EXPECT_NE(one->err().find("--prefix: invalid value 'at-once'"), std::string::npos) << one->err();
      }
    }
    EXPECT_EQ(server_->integer({"DBSIZE"}), 0);
  }
}

TEST_F(StoreWithRedis, PrefixOfAStoreOnAnotherHostIsFreeAfterItsClaimExpires) {
  server_->command({"HSET", "p:daemon", "instance", "1", "socket", socket(), "node", "elsewhere"});
  server_->command({"PEXPIRE", "p:daemon", "3000"});
  const Words words{"store", "serve",   "--socket",     socket(),   "--memory",
                    "64Mi",  "--redis", server_->url(), "--prefix", "p"};
  const Outcome refused = place_.run(words);
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(refused.err.find("of elsewhere"), std::string::npos) << refused.err;
  EXPECT_TRUE(await([&] { return server_->integer({"EXISTS", "p:daemon"}) == 0; }));
  const auto heir = place_.start(words);
  EXPECT_TRUE(await([&] { return server_->integer({"EXISTS", "p:daemon"}) == 1; })) << heir->err();
  EXPECT_GT(server_->integer({"PTTL", "p:daemon"}), 0) << "the claim must expire if its store dies";
}

TEST_F(StoreWithRedis, RestartedStoreRemovesKeysOfFormerTensors) {
  const auto killed = serve_mirrored();
  {
    Store store(socket());
    for (int i = 0; i < 100; ++i) store.create("t" + std::to_string(i), {Dtype::u8, {1}, {}});
  }
  ASSERT_TRUE(await([&] { return server_->integer({"SCARD", "p:tensors"}) == 100; }));
  killed->signal(SIGKILL);
  killed->wait();
  server_->command({"SET", "p:other", "somebody's"});
  const auto daemon = serve_mirrored();
  ASSERT_TRUE(await([&] { return daemon->err().find("100 tensors of a former daemon") != std::string::npos; }))
      << daemon->err();
  EXPECT_EQ(server_->integer({"SCARD", "p:tensors"}), 0);
  EXPECT_EQ(server_->integer({"EXISTS", "p:tensor:t7"}), 0);
  EXPECT_EQ(server_->integer({"EXISTS", "p:other"}), 1);
}

TEST_F(StoreWithRedis, MirrorIsRewrittenAfterRedisRestarts) {
  const auto daemon = serve_mirrored();
  Store store(socket());
  store.create("before", {Dtype::u8, {1}, {}});
  ASSERT_TRUE(await([&] { return server_->integer({"SISMEMBER", "p:tensors", "before"}) == 1; }));
  for (int round = 0; round < 3; ++round) {
    server_->process().signal(SIGKILL);
    server_->process().wait();
    store.create("meanwhile" + std::to_string(round), {Dtype::u8, {1}, {}});
    EXPECT_EQ(store.stat("before").bytes, 1u) << "clients must not wait for the server";
    server_->kill_and_start();  // the server is empty, because it saves nothing
    ASSERT_TRUE(await([&] { return server_->integer({"SCARD", "p:tensors"}) == 2 + round; })) << daemon->err();
    EXPECT_EQ(hash_of("meanwhile" + std::to_string(round))["bytes"], "1");
  }
}

TEST_F(StoreWithRedis, MirrorIsRewrittenAfterRedisLosesOrRestoresData) {
  const auto daemon = serve_mirrored();
  Store store(socket());
  store.create("old", {Dtype::u8, {1}, {}});
  ASSERT_TRUE(await([&] { return server_->integer({"SISMEMBER", "p:tensors", "old"}) == 1; }));
  server_->command({"FLUSHALL"});
  EXPECT_TRUE(await([&] { return server_->integer({"SISMEMBER", "p:tensors", "old"}) == 1; })) << daemon->err();
  // If a server restarts at once with saved data, only the lost connection reveals the restart.
  server_->command({"SAVE"});
  store.remove("old");
  store.create("new", {Dtype::u8, {1}, {}});
  ASSERT_TRUE(await([&] { return server_->integer({"SISMEMBER", "p:tensors", "new"}) == 1; }));
  server_->kill_and_start();
  EXPECT_TRUE(await([&] {
    return server_->integer({"SISMEMBER", "p:tensors", "new"}) == 1 &&
           server_->integer({"SISMEMBER", "p:tensors", "old"}) == 0;
  })) << daemon->err();
}

TEST_F(StoreWithRedis, RequestsArriveThroughTheList) {
  const auto daemon = serve_mirrored();
  const Json made = ask({{"op", "create"}, {"name", "w"}, {"dtype", "f32"}, {"shape", {8}}, {"pid", 1}});
  ASSERT_TRUE(made.at("ok")) << made;
  EXPECT_EQ(made.at("socket"), socket());
  EXPECT_EQ(Store(socket()).get("w").generation(), made.at("tensor").at("generation"));
  EXPECT_EQ(ask({{"op", "create"}, {"name", "w"}, {"dtype", "f32"}, {"shape", {8}}}).at("error"), "exists");
  EXPECT_EQ(ask({{"op", "list"}}).at("tensors").size(), 1u);
  EXPECT_TRUE(ask({{"op", "delete"}, {"name", "w"}}).at("ok"));
  EXPECT_EQ(ask({{"op", "stat"}, {"name", "w"}}).at("error"), "not_found");
  // An invalid request gets an error reply if it names a valid reply list; otherwise it does no harm.
  EXPECT_EQ(ask({{"op", "explode"}}).at("error"), "bad_request");
  server_->command({"RPUSH", "tensor_lifecycle", "no JSON", "", R"({"op":"status"})", std::string(100'000, '{')});
  server_->command({"SET", "precious", "x"});
  server_->command({"RPUSH", "tensor_lifecycle", R"({"op":"status","reply_to":"precious"})"});
  server_->command({"SET", "tensor_lifecycle:text", "x"});
  server_->command({"RPUSH", "tensor_lifecycle", R"({"op":"status","reply_to":"tensor_lifecycle:text"})"});
  EXPECT_TRUE(ask({{"op", "status"}}).at("ok"));
  const Reply kept = server_->command({"GET", "precious"});
  EXPECT_STREQ(kept->str, "x");
  // A reply that no client reads expires.
  server_->command({"RPUSH", "tensor_lifecycle", R"({"op":"status","reply_to":"tensor_lifecycle:nobody"})"});
  ASSERT_TRUE(await([&] { return server_->integer({"PTTL", "tensor_lifecycle:nobody"}) > 0; }));
}

TEST_F(StoreCommand, MetricsReportTensorsAndLeases) {
  if (!serves_metrics()) GTEST_SKIP() << "built without prometheus-cpp";
  const int port = free_port();
  const auto daemon = serve({"--metrics", "127.0.0.1:" + std::to_string(port)});
  Store store(socket());
  const Tensor held = store.create("x", {Dtype::u8, {1000}, {}});
  const std::string page = get(port, "/metrics");
  EXPECT_EQ(value_of(page, "feedrate_store_tensors"), 1) << page;
  EXPECT_EQ(value_of(page, "feedrate_store_leases"), 1);
  EXPECT_EQ(value_of(page, "feedrate_store_tensor_bytes"), 1024);
  EXPECT_NE(page.find("{store=\"" + socket() + "\"}"), page.npos);
  EXPECT_TRUE(get(port, "/healthz").starts_with("HTTP/1.1 200"));
}

}  // namespace
}  // namespace feedrate::cli_test
