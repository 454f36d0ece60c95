#include "experiments/flow.hpp"

#include <optional>

#include "common/clock.hpp"
#include "common/threads.hpp"
#include "common/trace.hpp"

namespace feedrate {
namespace {

/// Results are verified before they are timed, so they are taken in portions: 2 µs of verification. And not smaller,
/// for each begins with lines that no cache holds.
constexpr std::size_t kPortionBytes = 64 << 10;

/// Results of a queue that does no work have no ids, and are taken to be the next ones.
std::uint64_t first_id(const Flow& flow, const Work& work, const ConstMessages& results) {
  return work.queue_works ? results.header(0).id : message_id(flow.index, flow.tracker.lowest_missing());
}

/// Compares results with what becomes of the messages whose ids they carry.
Checked check(const Flow& flow, const Work& work, const ConstMessages& results) {
  if (!flow.mixed()) return work.workload.check(work.seed, flow.payload, results);
  Checked all{true, true};
  for (std::size_t i = 0; i < results.count; ++i) {
    const ConstMessages one = results.from(i).first(1);
    const std::uint64_t id = one.header(0).id, sequence = sequence_of(id);
    all.right &=
        flow.may_have(sequence, sequence + 1) && work.workload.check(work.seed, flow.payload_of(sequence), one).right;
    all.consecutive &= id == results.header(0).id + i;
  }
  return all;
}

/// How many results at the head of `results` (at least one) have ids that count up.
std::size_t leading_run(const ConstMessages& results) {
  const std::uint64_t first = results.header(0).id;
  std::size_t count = 1;
  while (count < results.count && results.header(count).id == first + count) ++count;
  return count;
}

/// A portion's moments: the collector comes to it, and has verified it.
struct Moments {
  std::uint64_t found_ns, verified_ns;
};

void record_stages(Flow& flow, const StageClock& clock, std::uint64_t sequence, const Moments& moments) {
  if (flow.stages.size() >= most_stage_samples(flow.producers)) return;
  const std::uint64_t id = message_id(flow.index, sequence);
  StageSample sample{id, 0, clock.times(id)};
  auto& returned = sample.times[static_cast<unsigned>(Stage::returned)];
  if (returned == 0) returned = moments.found_ns;
  sample.times[static_cast<unsigned>(Stage::collected)] = moments.verified_ns;
  sample.due = flow.schedule != nullptr ? flow.due_ns(sequence) : sample.times[0];
  flow.stages.push_back(sample);
}

/// A timed message's result is verified.
void record(Flow& flow, const Work& work, const Pass& pass, std::uint64_t sequence, const Moments& moments) {
  if (work.stages != nullptr && work.stages->samples(sequence)) record_stages(flow, *work.stages, sequence, moments);
  const std::uint64_t now = moments.verified_ns;
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
    const bool right = verdict == Tracker::Verdict::unknown || check(flow, work, result).right || !work.queue_works;
    counts.corrupted += right && verdict == Tracker::Verdict::fresh ? 0 : 1;
    if (verdict == Tracker::Verdict::unknown) continue;
    ++counts.received;
    if ((sequence & (pass.sample_every - 1)) == 0) record(flow, work, pass, sequence, {found_ns, now_ns()});
  }
}

/// Counts a run of right results, if it is this flow's and new.
bool accept(Flow& flow, const Work& work, std::uint64_t first_id, std::uint64_t count) {
  const std::uint64_t first = sequence_of(first_id), end = first + count;
  // The producer's line is asked for only when what it said the last time does not cover the run. What is published is
  // counted after it: a batch more may be on its way.
  if (end > flow.sent_seen + work.point.batch) flow.sent_seen = flow.sent.load(std::memory_order_relaxed);
  const bool known =
      producer_of(first_id) == flow.index && flow.may_have(first, end) && end <= flow.sent_seen + work.point.batch;
  if (!known || !flow.tracker.accept_run(first, count)) return false;
  flow.counts.received += count;
  return true;
}

/// Verifies, counts and times results. They are verified together, whatever their ids, as they come out of memory here
/// and no branch has to wait for them; run by run they are looked at when they are near.
void take(Flow& flow, const Work& work, const Pass& pass, const ConstMessages& results) {
  const bool staged =
      results.count > 1 ? work.stages != nullptr : samples_one_of(work, sequence_of(first_id(flow, work, results)), 1);
  const std::uint64_t found_ns = staged ? now_ns() : 0;
  Checked checked = check(flow, work, results);
  // A queue that does no work has its results compared too, for the time that takes, but they answer nothing.
  if (!work.queue_works) checked = {true, true};
  std::uint64_t now = 0;
  for (ConstMessages rest = results; !rest.empty();) {
    const ConstMessages run = rest.first(checked.consecutive ? rest.count : leading_run(rest));
    const std::uint64_t id = first_id(flow, work, run);
    if (checked.right && accept(flow, work, id, run.count)) {
      for_timed(sequence_of(id), run.count, pass.sample_every, [&](std::uint64_t timed) {
        if (now == 0) now = now_ns();
        record(flow, work, pass, timed, {found_ns, now});
      });
    } else {
      take_one_by_one(flow, work, pass, run, found_ns);
    }
    rest = rest.from(run.count);
  }
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
    const std::size_t portion = std::max<std::size_t>(1, kPortionBytes / results.stride);
    for (ConstMessages rest = results; !rest.empty(); rest = rest.from(std::min(portion, rest.count))) {
      take(flow, work, pass, rest.first(portion));
    }
    flow.collector->release(results.count);
    flow.lowest_missing.store(flow.tracker.lowest_missing(), std::memory_order_relaxed);
    if (pass.messages != 0) flow.finished_at = now_ns();  // before `received` shows that this was the last
    flow.received.store(flow.counts.received, std::memory_order_release);
  }
}

}  // namespace feedrate
