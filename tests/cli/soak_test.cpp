// Workers under steady load for 5 s, a minute in long runs, or FEEDRATE_SOAK_SECONDS. Memory and latency must not grow.
// With FEEDRATE_TEST_DEVICE=cuda they run on a GPU, and its memory is monitored as well.
#include <fmt/format.h>

#include "tests/cli/delivery.hpp"
#include "tests/cli/gpu_memory.hpp"
#include "tests/cli/provenance.hpp"
#include "tests/support/long.hpp"

namespace feedrate::cli_test {
namespace {

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

/// Samples over time; the first quarter of them is warm-up.
class Series {
 public:
  void add(double value) { values_.push_back(value); }
  double early() const { return part(1, 2); }
  double late() const { return part(3, 4); }

 private:
  double part(std::size_t from, std::size_t to) const {
    const auto at = [&](std::size_t quarter) {
      return values_.begin() + static_cast<std::ptrdiff_t>(values_.size() * quarter / 4);
    };
    return median({at(from), at(to)});
  }
  std::vector<double> values_;
};

double resident_bytes(const Process& process) {
  std::istringstream statm(read_text(fs::path("/proc") / std::to_string(process.id()) / "statm"));
  double size = 0, resident = 0;
  statm >> size >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE));
}

double used_memory(RedisServer& server) {
  const Reply reply = server.command({"INFO", "memory"});
  const std::string text(reply->str, reply->len), name = "used_memory:";
  return std::stod(text.substr(text.find(name) + name.size()));
}

/// One queue, its worker and a ledger.
class Line {
 public:
  Line(std::string queue, const std::string& device, RedisServer& server, Workplace& place)
      : queue_(std::move(queue)), on_gpu_(device != "cpu"), server_(server), ledger_(server.socket(), queue_, queue_) {
    worker_ = start_worker(place, {"--queue", queue_, "--device", device, "--redis", server.url(), "--prefix", queue_,
                                   "--dead-letters", "20", "--results-expire", "1"});
    ledger_.start_sending(400);
  }
  void sample() {
    resident.add(resident_bytes(*worker_));
    latency.add(lone_seconds());
    if (on_gpu_) gpu_memory.add(static_cast<double>(gpu_memory_used_by(worker_->id())));
  }
  void expect_flat() {
    ledger_.stop_sending();
    ledger_.settle();
    const auto tally = ledger_.tally();
    EXPECT_EQ(tally.lost, 0u) << queue_;
    EXPECT_EQ(tally.duplicated, 0u) << queue_;
    EXPECT_FALSE(worker_->ended()) << queue_ << worker_->err();
    constexpr double kMiB = 1 << 20;
    EXPECT_LT(resident.late(), 1.03 * resident.early() + kMiB) << queue_ << ": the worker's memory grows";
    EXPECT_LT(latency.late(), 2 * latency.early() + 0.1) << queue_ << ": the latency grows";
    if (on_gpu_) {
      EXPECT_GT(gpu_memory.early(), 0) << queue_ << ": nvidia-smi does not list this process";
      EXPECT_LE(gpu_memory.late(), gpu_memory.early()) << queue_ << ": the worker's GPU memory grows";
    }
    fmt::print("{}: {} sent, worker {:.1f} → {:.1f} MiB, lone message {:.2f} → {:.2f} ms", queue_, tally.sent,
               resident.early() / kMiB, resident.late() / kMiB, 1e3 * latency.early(), 1e3 * latency.late());
    if (on_gpu_) fmt::print(", GPU {} → {} MiB", gpu_memory.early(), gpu_memory.late());
    fmt::print("\n");
  }
  Series resident, latency, gpu_memory;

 private:
  /// Seconds from sending a message until its result arrives.
  double lone_seconds() {
    const std::string tasks = queue_ + ":tasks", results = queue_ + ":results:1";
    const std::string element = encode(id_of(1, sent_++), {1, 2, 3, 4});
    const auto begin = std::chrono::steady_clock::now();
    if (queue_ == "redis_stream") {
      server_.command({"XADD", tasks, "*", "m", element});
      const Reply reply = server_.command({"XREAD", "BLOCK", "5000", "STREAMS", results, "0"});
      EXPECT_EQ(reply->type, REDIS_REPLY_ARRAY) << queue_;
      server_.command({"DEL", results});
    } else {
      const auto score = std::to_string(sent_);
      server_.command(queue_ == "redis_priority" ? Words{"ZADD", tasks, score, element}
                                                 : Words{"LPUSH", tasks, element});
      if (queue_ == "redis_pubsub") server_.command({"PUBLISH", tasks + ":wake", "1"});
      EXPECT_EQ(server_.command({"BRPOP", results, "5"})->type, REDIS_REPLY_ARRAY) << queue_;
    }
    return Seconds(std::chrono::steady_clock::now() - begin).count();
  }
  std::string queue_;
  bool on_gpu_;
  RedisServer& server_;
  Ledger ledger_;
  std::unique_ptr<Process> worker_;
  std::uint64_t sent_ = 0;
};

TEST(SoakTest, MemoryAndLatencyStayFlat) {
  FEEDRATE_NEEDS_REDIS();
  const double seconds = std::stod(from_environment("FEEDRATE_SOAK_SECONDS", test::long_tests() ? "60" : "5"));
  const std::string device = from_environment("FEEDRATE_TEST_DEVICE", "cpu");
  RedisServer server;
  Workplace place;
  fmt::print("{}\n", provenance(place, device).dump());
  std::vector<std::unique_ptr<Line>> lines;
  for (const char* queue : {"redis_list", "redis_priority", "redis_pubsub", "redis_reliable", "redis_stream"}) {
    lines.push_back(std::make_unique<Line>(queue, device, server, place));
  }
  Series memory;
  const auto begin = std::chrono::steady_clock::now();
  while (Seconds(std::chrono::steady_clock::now() - begin).count() < seconds) {
    for (const auto& line : lines) line->sample();
    memory.add(used_memory(server));
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
  for (const auto& line : lines) line->expect_flat();
  EXPECT_LT(memory.late(), 1.05 * memory.early() + (1 << 19)) << "the server's memory grows";
  fmt::print("the server {:.2f} → {:.2f} MiB\n", memory.early() / (1 << 20), memory.late() / (1 << 20));
}

}  // namespace
}  // namespace feedrate::cli_test
