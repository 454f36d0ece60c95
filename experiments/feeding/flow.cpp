#include "experiments/feeding/flow.hpp"

#include <fmt/format.h>

#include <numeric>
#include <optional>
#include <span>

#include "common/clock.hpp"
#include "common/nvtx_range.hpp"
#include "common/threads/threads.hpp"

namespace feedrate {
namespace {

/// Size of a portion of results. Results are verified before they are timed, so they are taken in portions, each about
/// 2 µs of verification. Smaller portions would be slower, since each begins with uncached lines.
constexpr std::size_t kPortionBytes = 64 << 10;

/// Compares results with the expected results of the messages whose ids they carry (Workload::check).
Checked check(const Flow& flow, const Work& work, const ConstMessages& results, std::uint64_t* ids) {
  if (!flow.mixed()) return work.payloads.check(work.seed, flow.payload, results, ids);
  Checked all{true, false, 0};
  for (std::size_t i = 0; i < results.count; ++i) {
    const ConstMessages one = results.from(i).first(1);
    ids[i] = one.header(0).id;
    const std::uint64_t sequence = work.queue_works ? sequence_of(ids[i]) : flow.tracker.lowest_missing() + i;
    all.right &= flow.may_have(sequence, sequence + 1) &&
                 work.payloads.matches(work.seed, ids[i], flow.payload_of(sequence), one);
  }
  return all;
}

/// Number of consecutive ids at the head of `ids`, at least one.
std::size_t leading_run(std::span<const std::uint64_t> ids) {
  std::size_t count = 1;
  while (count < ids.size() && ids[count] == ids[0] + count) ++count;
  return count;
}

/// Times at which the collector reached a portion and at which it had verified the portion.
struct Moments {
  std::uint64_t found_ns, verified_ns;
};

void record_stages(Flow& flow, const StageClock& clock, std::uint64_t sequence, const Moments& moments) {
  if (flow.stages.size() >= max_stage_samples(flow.producers)) return;
  const std::uint64_t id = message_id(flow.index, sequence);
  StageSample sample{id, 0, clock.times(id)};
  auto& returned = sample.times[static_cast<unsigned>(Stage::returned)];
  if (returned == 0) returned = moments.found_ns;
  sample.times[static_cast<unsigned>(Stage::collected)] = moments.verified_ns;
  sample.due = flow.schedule != nullptr ? flow.due_ns(sequence) : sample.times[0];
  flow.stages.push_back(sample);
}

/// Whether a message belongs to a closed load's first window, whose messages meet an emptier pipe than all later ones.
bool fills_the_pipe(const Flow& flow, const Work& work, const Pass& pass, std::uint64_t sequence) {
  return pass.schedule == nullptr && pass.messages == 0 && sequence < flow.first + work.point.window;
}

/// Records the times of a timed message whose result is verified.
void record(Flow& flow, const Work& work, const Pass& pass, std::uint64_t sequence, const Moments& moments) {
  if (fills_the_pipe(flow, work, pass, sequence)) return;
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

std::string describe_wrong(const Flow& flow, const Work& work, std::uint64_t id, Tracker::Verdict verdict,
                           const ConstMessages& result) {
  const std::string name = fmt::format("message {} of producer {}", sequence_of(id), producer_of(id));
  if (verdict == Tracker::Verdict::unknown)
    return name + ": delivered to producer " + std::to_string(flow.index) + ", which expects no such message";
  return name + ": " + work.payloads.difference(work.seed, id, flow.payload_of(sequence_of(id)), result);
}

void take_one_by_one(Flow& flow, const Work& work, const Pass& pass, std::span<const std::uint64_t> ids,
                     const ConstMessages& results, std::uint64_t found_ns) {
  Counts& counts = flow.counts;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const std::uint64_t id = ids[i], sequence = sequence_of(id);
    const bool known = producer_of(id) == flow.index && flow.may_have(sequence, sequence + 1) &&
                       sequence < flow.sent.load(std::memory_order_relaxed) + work.point.batch;
    const auto verdict = known ? flow.tracker.accept(sequence) : Tracker::Verdict::unknown;
    // Earlier passes are complete, so a result of one is a duplicate.
    const bool earlier = producer_of(id) == flow.index && sequence < flow.first;
    if (earlier || verdict == Tracker::Verdict::duplicate) {
      ++counts.duplicated;
      continue;
    }
    const bool right = verdict == Tracker::Verdict::unknown || !work.queue_works ||
                       work.payloads.matches(work.seed, id, flow.payload_of(sequence), results.from(i));
    if (!right || verdict != Tracker::Verdict::fresh) {
      ++counts.corrupted;
      if (flow.first_wrong.empty()) flow.first_wrong = describe_wrong(flow, work, id, verdict, results.from(i));
    }
    if (verdict == Tracker::Verdict::unknown) continue;
    ++counts.received;
    if ((sequence & (pass.sample_every - 1)) == 0) record(flow, work, pass, sequence, {found_ns, now_ns()});
  }
}

/// Counts a run of right results if it belongs to this flow and is new.
bool accept_run(Flow& flow, const Work& work, std::uint64_t first_id, std::uint64_t count) {
  const std::uint64_t first = sequence_of(first_id), end = first + count;
  // Read the producer's cache line only if its last known value does not cover the run. Messages are counted after they
  // are published, so up to one more batch may be in flight.
  if (end > flow.sent_seen + work.point.batch) flow.sent_seen = flow.sent.load(std::memory_order_relaxed);
  const bool known =
      producer_of(first_id) == flow.index && flow.may_have(first, end) && end <= flow.sent_seen + work.point.batch;
  if (!known || !flow.tracker.accept_run(first, count)) return false;
  flow.counts.received += count;
  return true;
}

/// Verifies, counts and times results. They are verified together, regardless of their ids, because this first access
/// loads them from memory, and no branch has to wait for it. Then they are counted in runs of consecutive ids, using
/// the ids that were compared.
void take(Flow& flow, const Work& work, const Pass& pass, const ConstMessages& results) {
  if (flow.ids.size() < results.count) flow.ids.resize(results.count);
  // Results of a queue that does no work have no ids; assume that they are the next ones.
  const std::uint64_t next = message_id(flow.index, flow.tracker.lowest_missing());
  const std::uint64_t first = work.queue_works ? results.header(0).id : next;
  std::optional<NvtxRange> range;
  if (samples_one_of(work, sequence_of(first), results.count)) range.emplace("collect");
  // With several results, the sampled ids may not be the ones in a consecutive run.
  const bool staged = results.count > 1 ? work.stages != nullptr : range.has_value();
  const std::uint64_t found_ns = staged ? now_ns() : 0;
  Checked checked = check(flow, work, results, flow.ids.data());
  // Such a queue's results are compared too, because comparing takes time, but the outcome is ignored.
  if (!work.queue_works) checked = {true, true, next};
  std::uint64_t verified_ns = 0;
  const auto accept = [&](std::uint64_t first_id, std::uint64_t count) {
    if (!checked.right || !accept_run(flow, work, first_id, count)) return false;
    for_timed(sequence_of(first_id), count, pass.sample_every, [&](std::uint64_t timed) {
      if (verified_ns == 0) verified_ns = now_ns();
      record(flow, work, pass, timed, {found_ns, verified_ns});
    });
    return true;
  };
  if (checked.consecutive && accept(checked.first_id, results.count)) return;
  std::span<std::uint64_t> ids = std::span(flow.ids).first(results.count);
  if (checked.consecutive) std::iota(ids.begin(), ids.end(), checked.first_id);
  for (ConstMessages rest = results; !ids.empty();) {
    const std::size_t run = leading_run(ids);
    if (!accept(ids[0], run)) take_one_by_one(flow, work, pass, ids.first(run), rest, found_ns);
    ids = ids.subspan(run);
    rest = rest.from(run);
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
  finished_at = unsent = sending_ns = blocked_ns = polls = polling_ns = 0;
}

void collect(Flow& flow, const Work& work, const Pass& pass, const std::atomic<bool>& abort) {
  Backoff backoff;
  bool last_poll = false;  // everything is sent: if this poll is empty, no more results can follow
  while (!abort.load(std::memory_order_relaxed)) {
    const ConstMessages results = flow.collector->poll(work.point.batch);
    if (results.empty()) {
      if (last_poll && flow.counts.received >= flow.sent.load(std::memory_order_acquire)) break;
      last_poll = flow.all_sent.load(std::memory_order_acquire);
      backoff.wait();
      continue;
    }
    backoff.reset();
    const std::size_t portion = std::max<std::size_t>(1, kPortionBytes / results.stride);
    for (ConstMessages rest = results; !rest.empty(); rest = rest.from(std::min(portion, rest.count))) {
      take(flow, work, pass, rest.first(portion));
    }
    flow.collector->release(results.count);
    flow.lowest_missing.store(flow.tracker.lowest_missing(), std::memory_order_relaxed);
    if (pass.messages != 0) flow.finished_at = now_ns();  // before `received` shows that this was the last result
    flow.received.store(flow.counts.received, std::memory_order_release);
  }
}

}  // namespace feedrate
