#include <benchmark/benchmark.h>

#include <cstring>
#include <vector>

#include "experiments/flow.hpp"

/// What collecting a result of 64 bytes costs the driver, when the producer published `run` messages at a time to one
/// lane after the other: results then lie in runs whose ids count up.
namespace feedrate {
namespace {

constexpr std::size_t kPayload = 64, kResults = 1 << 18, kLanes = 4, kBatch = 256;

class NoProducer final : public Producer {
 public:
  Messages reserve(std::size_t) override { return {}; }
  void publish(std::size_t) override {}
};

/// The results of a pass, lane by lane, a batch of each by turns.
class Recorded final : public Collector {
 public:
  explicit Recorded(std::size_t run) : memory_(kResults * stride_of(kPayload)) {
    const auto workload = Workloads::instance().get("--workload", "echo").make({});
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      for (std::size_t place = 0; place < kResults / kLanes; place += run) {
        const Messages results = rest_of(lane, place).first(run);
        workload->fill(1, (place * kLanes + lane * run), kPayload, results);
        for (std::size_t i = 0; i < run; ++i) make_result(results, i);
      }
    }
  }
  void rewind() { lane_ = 0, at_ = 0; }
  ConstMessages poll(std::size_t n) override {
    const Messages rest = rest_of(lane_, at_).first(n);
    return {rest.base, rest.stride, rest.count};
  }
  void release(std::size_t n) override {
    lane_ = (lane_ + 1) % kLanes;
    if (lane_ == 0) at_ += n;
  }

 private:
  Messages rest_of(std::size_t lane, std::size_t place) {
    constexpr std::size_t each = kResults / kLanes;
    return {memory_.data() + (lane * each + place) * stride_of(kPayload), stride_of(kPayload), each - place};
  }
  static void make_result(const Messages& results, std::size_t i) {
    std::uint32_t sum = 0;
    for (std::size_t at = 0; at < kPayload; at += 4) {
      std::uint32_t word = 0;
      std::memcpy(&word, results.payload(i) + at, 4);
      sum += ++word;
      std::memcpy(results.payload(i) + at, &word, 4);
    }
    results.header(i).checksum = sum;
  }

  std::vector<std::byte> memory_;
  std::size_t lane_ = 0, at_ = 0;
};

class RecordedQueue final : public Queue {
 public:
  explicit RecordedQueue(std::size_t run) : run_(run) {}
  std::unique_ptr<Producer> producer(unsigned) override { return std::make_unique<NoProducer>(); }
  std::unique_ptr<Collector> collector(unsigned) override { return std::make_unique<Recorded>(run_); }
  void start() override {}
  void stop(bool) override {}
  Cost cost() const override { return {}; }

 private:
  std::size_t run_;
};

void collect_results(benchmark::State& state) {
  const auto run = static_cast<std::size_t>(state.range(0));
  const auto workload = Workloads::instance().get("--workload", "echo").make({});
  Point point;
  point.payload = kPayload, point.batch = kBatch, point.window = 4096;
  RecordedQueue queue(run);
  Flow flow(0, point, queue);
  const Work work{point, *workload, 1, true, nullptr};
  const Pass pass{.sample_every = 128};
  const std::atomic<bool> abort{false};
  for (auto _ : state) {
    state.PauseTiming();
    flow.tracker = Tracker(flow.stamps.size());
    flow.counts = {};
    flow.sent = kResults;
    flow.sent_seen = 0;
    flow.all_sent = true;
    dynamic_cast<Recorded&>(*flow.collector).rewind();
    state.ResumeTiming();
    collect(flow, work, pass, abort);
  }
  if (flow.counts.received != kResults || !flow.counts.clean()) state.SkipWithError("not what was sent");
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * kResults));
}
BENCHMARK(collect_results)->ArgName("run")->RangeMultiplier(2)->Range(4, 256);

}  // namespace
}  // namespace feedrate
