#include "experiments/flow.hpp"

#include <optional>

#include "common/clock.hpp"
#include "common/threads.hpp"
#include "common/trace.hpp"

namespace feedrate {
namespace {

/// A run is verified before its results are timed, so a run is short: 2 µs of verification. And not shorter, for each
/// begins with lines that no cache holds.
constexpr std::size_t kRunBytes = 64 << 10;

/// Results of a queue that does no work have no ids, and are taken to be the next ones.
std::uint64_t first_id(const Flow& flow, const Work& work, const ConstMessages& results) {
  return work.queue_works ? results.header(0).id : message_id(flow.index, flow.tracker.lowest_missing());
}

/// How many results at the head of `results` (at least one) have ids that count up. Where the last has the id that it
/// would have, those between are taken to have theirs: who compares the results (all_match) compares every id.
std::size_t leading_run(const Work& work, const ConstMessages& results) {
  const std::size_t most = std::min(results.count, std::max<std::size_t>(1, kRunBytes / results.stride));
  if (!work.queue_works) return most;
  const std::uint64_t first = results.header(0).id;
  if (results.header(most - 1).id == first + most - 1) return most;
  std::size_t count = 1;
  while (count < most && results.header(count).id == first + count) ++count;
  return count;
}

bool all_match(const Flow& flow, const Work& work, std::uint64_t first_id, const ConstMessages& run) {
  if (!flow.mixed()) return work.workload.all_match(work.seed, first_id, flow.payload, run);
  bool right = true;
  for (std::size_t i = 0; i < run.count; ++i) {
    const std::size_t payload = flow.payload_of(sequence_of(first_id) + i);
    right &= work.workload.all_match(work.seed, first_id + i, payload, run.from(i).first(1));
  }
  return right;
}

/// A run's moments: the collector comes to it, and has verified it.
struct Moments {
  std::uint64_t found_ns, verified_ns;
};

void record_stages(Flow& flow, const StageClock& clock, std::uint64_t sequence, const Moments& run) {
  if (flow.stages.size() >= most_stage_samples(flow.producers)) return;
  const std::uint64_t id = message_id(flow.index, sequence);
  StageSample sample{id, 0, clock.times(id)};
  auto& returned = sample.times[static_cast<unsigned>(Stage::returned)];
  if (returned == 0) returned = run.found_ns;
  sample.times[static_cast<unsigned>(Stage::collected)] = run.verified_ns;
  sample.due = flow.schedule != nullptr ? flow.due_ns(sequence) : sample.times[0];
  flow.stages.push_back(sample);
}

/// A timed message's result is verified.
void record(Flow& flow, const Work& work, const Pass& pass, std::uint64_t sequence, const Moments& run) {
  if (work.stages != nullptr && work.stages->samples(sequence)) record_stages(flow, *work.stages, sequence, run);
  const std::uint64_t now = run.verified_ns;
  const Stamp& stamp = flow.stamp(sequence, pass.sample_every);
  const std::uint64_t published = stamp.published_ns.load(std::memory_order_relaxed);
  if (flow.schedule == nullptr) return flow.latency.record(now - published);
  const std::uint64_t response = now - flow.due_ns(sequence);
  flow.latency.record(response);
  flow.without_own_lag.record(response - stamp.own_lag_ns.load(std::memory_order_relaxed));
  flow.service.record(now - published);
  if (!flow.schedule->priorities.empty()) {
    flow.by_priority[flow.schedule->priorities[flow.place_of(sequence)]].record(response);
  }
}

void take_one_by_one(Flow& flow, const Work& work, const Pass& pass, const ConstMessages& run, std::uint64_t found_ns) {
  Counts& counts = flow.counts;
  for (std::size_t i = 0; i < run.count; ++i) {
    const ConstMessages result = run.from(i).first(1);
    const std::uint64_t id = result.header(0).id, sequence = sequence_of(id);
    const bool known = producer_of(id) == flow.index && flow.may_have(sequence, sequence + 1) &&
                       sequence < flow.sent.load(std::memory_order_relaxed) + work.point.batch;
    const auto verdict = known ? flow.tracker.accept(sequence) : Tracker::Verdict::unknown;
    // An earlier pass is complete: whatever comes of it again, comes twice.
    const bool earlier = producer_of(id) == flow.index && sequence < flow.first;
    if (earlier || verdict == Tracker::Verdict::duplicate) {
      ++counts.duplicated;
      continue;
    }
    const bool right = verdict == Tracker::Verdict::unknown || all_match(flow, work, id, result) || !work.queue_works;
    counts.corrupted += right && verdict == Tracker::Verdict::fresh ? 0 : 1;
    if (verdict == Tracker::Verdict::unknown) continue;
    ++counts.received;
    if ((sequence & (pass.sample_every - 1)) == 0) record(flow, work, pass, sequence, {found_ns, now_ns()});
  }
}

/// Verifies and counts results whose ids count up: all at once when they are as they should be, else one by one.
void take_run(Flow& flow, const Work& work, const Pass& pass, const ConstMessages& run) {
  const std::uint64_t id = first_id(flow, work, run), first = sequence_of(id), end = first + run.count;
  const std::uint64_t found_ns = samples_one_of(work, first, run.count) ? now_ns() : 0;
  // The producer's line is asked for only when what it said the last time does not cover the run. What is published is
  // counted after it: a batch more may be on its way.
  if (end > flow.sent_seen + work.point.batch) flow.sent_seen = flow.sent.load(std::memory_order_relaxed);
  const bool known =
      producer_of(id) == flow.index && flow.may_have(first, end) && end <= flow.sent_seen + work.point.batch;
  // A queue that does no work has its results compared too, for the time that takes, but they answer nothing.
  const bool right = known && (all_match(flow, work, id, run) || !work.queue_works);
  if (!right || !flow.tracker.accept_run(first, run.count)) return take_one_by_one(flow, work, pass, run, found_ns);
  flow.counts.received += run.count;
  std::uint64_t now = 0;
  for_timed(first, run.count, pass.sample_every, [&](std::uint64_t timed) {
    if (now == 0) now = now_ns();
    record(flow, work, pass, timed, {found_ns, now});
  });
}

}  // namespace

void Flow::begin(const Schedule* of_pass) {
  schedule = of_pass;
  first = sent.load();
  due.clear();
  if (schedule != nullptr) {
    due.reserve(schedule->size() / producers + 1);
    for (std::size_t place = index; place < schedule->size(); place += producers) {
      due.push_back(schedule->due_ns[place]);
    }
  }
  all_sent = false;
  latency = service = without_own_lag = send_lag = own_lag = Histogram();
  by_priority.clear();
  stages.clear();
  finished_at = unsent = sending_ns = blocked_ns = looks = looking_ns = 0;
}

void collect(Flow& flow, const Work& work, const Pass& pass, const std::atomic<bool>& abort) {
  Backoff backoff;
  bool last_look = false;  // all is sent: if nothing has come now, nothing can follow what has
  while (!abort.load(std::memory_order_relaxed)) {
    const ConstMessages results = flow.collector->poll(work.point.batch);
    if (results.empty()) {
      if (last_look && flow.counts.received >= flow.sent.load(std::memory_order_acquire)) break;
      last_look = flow.all_sent.load(std::memory_order_acquire);
      backoff.wait();
      continue;
    }
    backoff.reset();
    std::optional<TraceRange> range;
    if (samples_one_of(work, sequence_of(first_id(flow, work, results)), results.count)) range.emplace("collect");
    for (ConstMessages rest = results; !rest.empty();) {
      const ConstMessages run = rest.first(leading_run(work, rest));
      take_run(flow, work, pass, run);
      rest = rest.from(run.count);
    }
    flow.collector->release(results.count);
    flow.lowest_missing.store(flow.tracker.lowest_missing(), std::memory_order_relaxed);
    if (pass.messages != 0) flow.finished_at = now_ns();  // before `received` shows that this was the last
    flow.received.store(flow.counts.received, std::memory_order_release);
  }
}

}  // namespace feedrate
