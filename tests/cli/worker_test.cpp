// `feedrate worker` in its own process, under load from another feedrate process and from a client that knows only the
// documented format.
#include <cstring>
#include <map>
#include <optional>
#include <set>

#include "tests/cli/task_format.hpp"

namespace feedrate::cli_test {
namespace {

class WorkerTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    FEEDRATE_NEEDS_REDIS();
    server_.emplace();
  }
  bool stream() const { return GetParam() == "redis_stream"; }
  std::unique_ptr<Process> start(const Words& more = {}) {
    return start_worker(place_, {"--queue", GetParam(), "--device", "cpu", "--redis", server_->url(), "--prefix", "t"},
                        more);
  }
  Outcome load(const Words& more) {
    Words words{"run", "--external-worker", "--queue",      GetParam(), "--device", "cpu", "--json", "--warmup",
                "0",   "--redis",           server_->url(), "--prefix", "t"};
    words.insert(words.end(), more.begin(), more.end());
    return place_.run(words);
  }
  void push(const std::string& element) {
    const Reply reply = add_task(*server_, GetParam(), element);
    ASSERT_TRUE(reply && reply->type != REDIS_REPLY_ERROR);
  }
  /// Raw elements in the reply list `list`, oldest first.
  std::vector<std::string> results(unsigned list) { return result_elements(*server_, GetParam(), list); }
  std::vector<std::string> await_results(unsigned list, std::size_t n) {
    EXPECT_TRUE(await([&] { return results(list).size() >= n; })) << "results: " << results(list).size();
    return results(list);
  }
  /// Number of entries of the stream that workers hold.
  long long pending() {
    const Reply reply = server_->command({"XPENDING", "t:tasks", "feedrate"});
    return reply && reply->type == REDIS_REPLY_ARRAY ? reply->element[0]->integer : -1;
  }
  std::optional<RedisServer> server_;
  Workplace place_;
};

TEST_P(WorkerTest, WorkerServesAnotherProcess) {
  const auto worker = start();
  const Outcome outcome = load({"--messages", "5000", "--producers", "2", "--pack", "4", "--window", "512"});
  ASSERT_EQ(outcome.code, 0) << outcome.err << outcome.out;
  const Json row = measured_in(outcome.out).at(0);
  expect_clean(row);
  EXPECT_EQ(row.at("details").at("counts").at("sent"), 5000);
  worker->signal(SIGTERM);
  EXPECT_EQ(worker->wait(), 0) << worker->err();
  EXPECT_NE(worker->err().find("5000 messages served"), std::string::npos) << worker->err();
}

TEST_P(WorkerTest, WorkerAnswersARawClient) {
  const auto worker = start();
  push(encode(id_of(3, 7), {1, 2, 0xFFFF'FFFF, 4, 5}));
  const auto elements = await_results(3, 1);
  ASSERT_EQ(elements.size(), 1u);
  EXPECT_EQ(elements[0].size(), 48u) << "16 + 20 bytes, padded";
  const Message result = decode(elements[0]);
  EXPECT_EQ(result.id, id_of(3, 7));
  EXPECT_EQ(result.length, 20u);
  EXPECT_EQ(result.words, (std::vector<std::uint32_t>{2, 3, 0, 5, 6}));
  EXPECT_EQ(result.checksum, 16u);
}

TEST_P(WorkerTest, WorkerAnswersEachMessageOfAnElement) {
  const auto worker = start();
  push(padded(encode(id_of(0, 1), {10})) + padded(encode(id_of(1, 2), {20, 21})) + encode(id_of(0, 3), {30}));
  const auto zero = await_results(0, 2), one = await_results(1, 1);
  ASSERT_EQ(zero.size(), 2u);
  EXPECT_EQ(decode(zero[0]).id, id_of(0, 1));
  EXPECT_EQ(decode(zero[1]).words, std::vector<std::uint32_t>{31});
  EXPECT_EQ(decode(one.at(0)).words, (std::vector<std::uint32_t>{21, 22}));
}

TEST_P(WorkerTest, WorkerPacksShortResultsBackToBack) {
  const auto worker = start({"--pack", "2", "--payload", "64"});
  push(padded(encode(id_of(0, 1), {10})) + padded(encode(id_of(0, 2), {20, 21, 22, 23, 24})));
  std::string bytes;
  for (const auto& element : await_results(0, 1)) bytes += element;
  std::map<std::uint64_t, std::vector<std::uint32_t>> found;
  for (std::size_t at = 0; at + 16 <= bytes.size();) {
    const Message message = decode(bytes.substr(at));
    found[message.id] = message.words;
    at += (16 + message.length + 15) / 16 * 16;
  }
  const std::map<std::uint64_t, std::vector<std::uint32_t>> wanted{{id_of(0, 1), {11}},
                                                                   {id_of(0, 2), {21, 22, 23, 24, 25}}};
  EXPECT_EQ(found, wanted);
}

TEST_P(WorkerTest, OversizedMessageFailsAsTooLong) {
  const auto worker = start({"--payload", "64"});
  push(encode(id_of(0, 1), std::vector<std::uint32_t>(1000, 5)));
  push(encode(id_of(0, 2), {1}));
  const auto elements = await_results(0, 2);
  ASSERT_EQ(elements.size(), 2u);
  EXPECT_EQ(decode(elements[0]).id, id_of(0, 1));
  EXPECT_EQ(decode(elements[0]).length, kFailed | kTooLong);
  EXPECT_EQ(decode(elements[1]).words, std::vector<std::uint32_t>{2});
}

TEST_P(WorkerTest, WorkerDropsGarbageAndContinues) {
  const auto worker = start();
  const auto warnings = [&] {
    const std::string text = worker->err();
    int n = 0;
    for (auto at = text.find("dropped"); at != text.npos; at = text.find("dropped", at + 1)) ++n;
    return n;
  };
  int expected = 0;
  for (const std::string& garbage :
       {std::string("hello"), encode(1, {1, 2, 3, 4}).substr(0, 20), std::string(15, '\0')}) {
    push(garbage);
    ++expected;
    EXPECT_TRUE(await([&] { return warnings() >= expected; })) << worker->err();
  }
  push(encode(id_of(2, 1), {41}));
  EXPECT_EQ(decode(await_results(2, 1).at(0)).words, std::vector<std::uint32_t>{42});
  EXPECT_FALSE(worker->ended());
  EXPECT_EQ(warnings(), 3) << worker->err();
  if (stream()) {
    EXPECT_TRUE(await([&] { return pending() == 0; })) << "dropped entries are still pending: " << pending();
    server_->command({"XADD", "t:tasks", "*", "other", "field"});
    EXPECT_TRUE(await([&] { return warnings() == 4; })) << "the entry without the field m is not dropped";
    EXPECT_TRUE(await([&] { return pending() == 0; })) << "the entry without m is still pending";
  }
}

TEST_P(WorkerTest, TerminatedWorkerAnswersTheTasksThatItHolds) {
  constexpr std::uint64_t kAll = 3000;
  const auto worker = start();
  for (std::uint64_t i = 0; i < kAll; ++i) push(encode(id_of(0, i), {static_cast<std::uint32_t>(i)}));
  worker->signal(SIGTERM);
  EXPECT_EQ(worker->wait(), 0) << worker->err();
  std::set<std::uint64_t> answered;
  for (const auto& element : results(0)) {
    const Message result = decode(element);
    EXPECT_TRUE(answered.insert(result.id).second) << "answered twice: " << result.id;
    EXPECT_EQ(result.words, std::vector<std::uint32_t>{static_cast<std::uint32_t>(result.id) + 1});
  }
  if (stream()) {
    EXPECT_EQ(pending(), 0) << "tasks were claimed but not answered";
  } else {
    EXPECT_EQ(answered.size() + server_->integer({GetParam() == "redis_priority" ? "ZCARD" : "LLEN", "t:tasks"}), kAll)
        << "tasks were claimed but not answered";
  }
  const auto again = start();
  await_results(0, kAll);
}

TEST_P(WorkerTest, WorkerExitsAfterItsServerDies) {
  const auto worker = start({"--reconnect", "1"});
  push(encode(1, {1}));
  await_results(0, 1);  // the worker is connected
  server_->process().signal(SIGKILL);
  EXPECT_EQ(worker->wait(), 1);
  EXPECT_NE(worker->err().find(server_->url()), std::string::npos) << worker->err();
}

INSTANTIATE_TEST_SUITE_P(Queues, WorkerTest,
                         testing::Values("redis_list", "redis_priority", "redis_pubsub", "redis_reliable",
                                         "redis_stream"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace feedrate::cli_test
