#include "experiments/load.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <thread>

#include "common/clock.hpp"
#include "common/error.hpp"
#include "common/threads.hpp"
#include "common/trace.hpp"

namespace feedrate {

namespace {

/// A run is verified before its results are timed, so a run is short: 2 µs of verification. And not shorter, for each
/// begins with lines that no cache holds.
constexpr std::size_t kRunBytes = 64 << 10;

/// How many results at the head of `results` (at least one) have ids that count up. Where the last has the id that it
/// would have, those between are taken to have theirs: who compares the results (all_match) compares every id.
std::size_t leading_run(const ConstMessages& results) {
  const std::size_t most = std::min(results.count, std::max<std::size_t>(1, kRunBytes / results.stride));
  const std::uint64_t first = results.header(0).id;
  if (results.header(most - 1).id == first + most - 1) return most;
  std::size_t count = 1;
  while (count < most && results.header(count).id == first + count) ++count;
  return count;
}

}  // namespace

/// One producer, its collector, and what they share. Everything atomic has one writer.
struct ClosedLoop::Flow {
  Flow(unsigned index, const Point& point, Queue& queue)
      : index(index),
        producer(queue.producer(index)),
        collector(queue.collector(index)),
        stamps(std::bit_ceil(std::max<std::size_t>(2 * point.window, 1024))),
        tracker(stamps.size()) {}

  unsigned index;
  std::unique_ptr<Producer> producer;
  std::unique_ptr<Collector> collector;
  // When timed messages were published. Side by side, so that not each of them costs both threads a line.
  std::vector<std::atomic<std::uint64_t>> stamps;
  std::atomic<std::uint64_t>& stamp(std::uint64_t sequence, unsigned every) {
    return stamps[(sequence >> std::countr_zero(every)) & (stamps.size() - 1)];
  }

  // Lines apart (128 bytes: the host fetches pairs): a producer waiting for room looks at `received` all the time, and
  // must not take the lines that its collector counts in.
  alignas(128) Tracker tracker;  // the collector's, as are the next four
  Counts counts;                 // read when it has ended
  Histogram latency;
  std::uint64_t finished_at = 0;  // when the last result of the pass came
  std::uint64_t sent_seen = 0;    // `sent`, as last looked at

  alignas(128) std::atomic<std::uint64_t> sent{0};  // by the producer
  std::atomic<bool> all_sent{false};
  alignas(128) std::atomic<std::uint64_t> received{0};  // by the collector
  std::atomic<std::uint64_t> lowest_missing{0};
};

ClosedLoop::ClosedLoop(Queue& queue, const Point& point, const Workload& workload, Device& device,
                       const LoadSettings& settings)
    : queue_(queue),
      point_(point),
      workload_(workload),
      device_(device),
      settings_(settings),
      queue_works_(Queues::instance().get("--queue", point.queue).works) {
  for (unsigned i = 0; i < point.producers; ++i) flows_.push_back(std::make_unique<Flow>(i, point, queue));
}

ClosedLoop::~ClosedLoop() = default;

void ClosedLoop::produce(Flow& flow, const Pass& pass) {
  const std::uint64_t start = flow.sent.load(std::memory_order_relaxed);
  const std::uint64_t share =
      pass.messages / point_.producers + (flow.index < pass.messages % point_.producers ? 1 : 0);
  const std::uint64_t limit = pass.messages == 0 ? kSequenceMask : start + share;
  const std::uint64_t every = pass.sample_every, span = flow.stamps.size();
  std::uint64_t sent = start, received = start, lowest = start;
  Backoff backoff;
  while (!stop_sending_.load(std::memory_order_relaxed) && sent < limit) {
    if (sent - received >= point_.window || sent - lowest >= span) {
      received = flow.received.load(std::memory_order_acquire);
      lowest = flow.lowest_missing.load(std::memory_order_relaxed);
    }
    const std::uint64_t room = std::min({static_cast<std::uint64_t>(point_.batch), limit - sent,
                                         point_.window - (sent - received), span - (sent - lowest)});
    const Messages slots = room == 0 ? Messages{} : flow.producer->reserve(room);
    if (slots.empty()) {
      flow.producer->progress();
      backoff.wait();
      continue;
    }
    backoff.reset();
    const TraceRange range("produce");
    workload_.fill(settings_.seed, message_id(flow.index, sent), point_.payload, slots);
    const std::uint64_t end = sent + slots.count;
    if (std::uint64_t timed = (sent + every - 1) & ~(every - 1); timed < end) {
      const std::uint64_t now = now_ns();
      for (; timed < end; timed += every) flow.stamp(timed, pass.sample_every).store(now, std::memory_order_relaxed);
    }
    flow.producer->publish(slots.count);
    sent = end;
    flow.sent.store(sent, std::memory_order_release);
  }
  flow.all_sent.store(true, std::memory_order_release);
  // A broker's client may still hold unsent bytes; they must go out while results are awaited.
  while (!abort_.load(std::memory_order_relaxed) && flow.received.load(std::memory_order_acquire) < sent) {
    flow.producer->progress();
    backoff.wait();
  }
}

void ClosedLoop::collect(Flow& flow, const Pass& pass) {
  Backoff backoff;
  bool last_look = false;  // all is sent: if nothing has come now, nothing can follow what has
  while (!abort_.load(std::memory_order_relaxed)) {
    const ConstMessages results = flow.collector->poll(point_.batch);
    if (results.empty()) {
      if (last_look && flow.counts.received >= flow.sent.load(std::memory_order_acquire)) break;
      last_look = flow.all_sent.load(std::memory_order_acquire);
      backoff.wait();
      continue;
    }
    backoff.reset();
    const TraceRange range("collect");
    for (ConstMessages rest = results; !rest.empty();) {
      const ConstMessages run = rest.first(leading_run(rest));
      take_run(flow, pass, run);
      rest = rest.from(run.count);
    }
    flow.collector->release(results.count);
    flow.lowest_missing.store(flow.tracker.lowest_missing(), std::memory_order_relaxed);
    if (pass.messages != 0) flow.finished_at = now_ns();  // before `received` shows that this was the last
    flow.received.store(flow.counts.received, std::memory_order_release);
  }
}

void ClosedLoop::take_run(Flow& flow, const Pass& pass, const ConstMessages& run) {
  const std::uint64_t id = run.header(0).id, first = sequence_of(id), end = first + run.count;
  // The producer's line is asked for only when what it said the last time does not cover the run.
  if (end > flow.sent_seen + point_.batch) flow.sent_seen = flow.sent.load(std::memory_order_relaxed);
  const bool known = producer_of(id) == flow.index && end <= flow.sent_seen + point_.batch;
  // The null queue's results are compared too, for the time that takes, but they answer nothing.
  const bool right = workload_.all_match(settings_.seed, id, point_.payload, run) || !queue_works_;
  if (!known || !right || !flow.tracker.accept_run(first, run.count)) return take_one_by_one(flow, pass, run);
  flow.counts.received += run.count;
  const std::uint64_t every = pass.sample_every;
  if (std::uint64_t timed = (first + every - 1) & ~(every - 1); timed < end) {
    const std::uint64_t now = now_ns();
    for (; timed < end; timed += every) {
      flow.latency.record(now - flow.stamp(timed, pass.sample_every).load(std::memory_order_relaxed));
    }
  }
}

void ClosedLoop::take_one_by_one(Flow& flow, const Pass& pass, const ConstMessages& run) {
  Counts& counts = flow.counts;
  for (std::size_t i = 0; i < run.count; ++i) {
    const ConstMessages result = run.from(i).first(1);
    const std::uint64_t id = result.header(0).id, sequence = sequence_of(id);
    const bool known =
        producer_of(id) == flow.index && sequence < flow.sent.load(std::memory_order_relaxed) + point_.batch;
    const auto verdict = known ? flow.tracker.accept(sequence) : Tracker::Verdict::unknown;
    if (verdict == Tracker::Verdict::duplicate) {
      ++counts.duplicated;
      continue;
    }
    const bool right = workload_.all_match(settings_.seed, id, point_.payload, result) || !queue_works_;
    counts.corrupted += right && verdict == Tracker::Verdict::fresh ? 0 : 1;
    if (verdict == Tracker::Verdict::unknown) continue;
    ++counts.received;
    if ((sequence & (pass.sample_every - 1)) == 0) {
      flow.latency.record(now_ns() - flow.stamp(sequence, pass.sample_every).load(std::memory_order_relaxed));
    }
  }
}

void ClosedLoop::guarded(const std::function<void()>& body) {
  try {
    device_.use_in_this_thread();
    body();
  } catch (...) {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::current_exception();
    abort_ = true;
    stop_sending_ = true;
  }
}

std::uint64_t ClosedLoop::received() const {
  std::uint64_t total = 0;
  for (const auto& flow : flows_) total += flow->received.load(std::memory_order_acquire);
  return total;
}

void ClosedLoop::supervise(const Pass& pass, std::uint64_t start, std::uint64_t received_before, PassResult& result) {
  const auto deadline = start + static_cast<std::uint64_t>(pass.seconds * 1e9);
  const auto patience = static_cast<std::uint64_t>(settings_.watchdog_seconds * 1e9);
  std::uint64_t last_received = received_before, last_progress = start;
  bool measuring = true;
  while (!abort_) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const std::uint64_t received_now = received(), now = now_ns();
    const bool interrupted = settings_.interrupted && settings_.interrupted();
    std::uint64_t sent = 0;
    bool all_sent = true;
    for (const auto& flow : flows_) {
      all_sent &= flow->all_sent.load(std::memory_order_acquire);
      sent += flow->sent.load(std::memory_order_acquire);
    }
    const bool done = all_sent && received_now >= sent;
    if (measuring && (interrupted || (pass.messages == 0 ? now >= deadline : done))) {
      measuring = false;
      result.received = received_now - received_before;
      result.seconds = static_cast<double>(now - start) / 1e9;
      stop_sending_ = true;
    }
    if (done && (stop_sending_ || pass.messages != 0)) break;
    if (received_now != last_received) {
      last_received = received_now;
      last_progress = now;
    } else if (now - last_progress > patience) {
      throw Failure(fmt::format("watchdog: no result for {} s, {} of {} messages missing", settings_.watchdog_seconds,
                                sent - received_now, sent));
    }
    queue_.check();
  }
  if (pass.messages != 0) {
    std::uint64_t finished = start;
    for (const auto& flow : flows_) finished = std::max(finished, flow->finished_at);
    result.seconds = static_cast<double>(finished - start) / 1e9;
  }
}

PassResult ClosedLoop::run(const Pass& pass) {
  PassResult result;
  stop_sending_ = false;
  for (auto& flow : flows_) {
    flow->all_sent = false;
    flow->latency = Histogram();
    flow->finished_at = 0;
  }
  {
    const std::uint64_t start = now_ns(), received_before = received();  // before any thread can be at work
    std::vector<std::jthread> threads;
    guarded([&] {  // so that threads that can't be had end those that could
      for (auto& flow : flows_) {
        threads.emplace_back([this, &flow, &pass] {
          if (settings_.pin_threads) pin_to_core(2 * flow->index);
          guarded([&] { produce(*flow, pass); });
        });
        threads.emplace_back([this, &flow, &pass] {
          if (settings_.pin_threads) pin_to_core(2 * flow->index + 1);
          guarded([&] { collect(*flow, pass); });
        });
      }
      supervise(pass, start, received_before, result);
    });
  }
  if (failure_) std::rethrow_exception(failure_);
  for (auto& flow : flows_) result.latency.merge(flow->latency);
  return result;
}

void ClosedLoop::collect_leftovers() {
  constexpr std::uint64_t kPatienceNs = 1'000'000;  // what is under way from a broker arrives within that
  for (auto& flow : flows_) {
    const std::uint64_t deadline = now_ns() + kPatienceNs;
    do {
      const ConstMessages results = flow->collector->poll(point_.batch);
      flow->counts.duplicated += results.count;
      flow->collector->release(results.count);
    } while (now_ns() < deadline);
  }
}

Counts ClosedLoop::counts() const {
  Counts total;
  for (const auto& flow : flows_) {
    total.sent += flow->sent.load();
    total.received += flow->counts.received;
    total.duplicated += flow->counts.duplicated;
    total.corrupted += flow->counts.corrupted;
    total.reordered += flow->tracker.reordered();
  }
  total.lost = total.sent - total.received;
  return total;
}

}  // namespace feedrate
