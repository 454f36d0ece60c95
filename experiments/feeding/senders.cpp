#include <optional>
#include <utility>

#include "common/clock.hpp"
#include "common/nvtx_range.hpp"
#include "common/threads/threads.hpp"
#include "experiments/feeding/flow.hpp"
#include "experiments/harness/load/lag_account.hpp"

namespace feedrate {
namespace {

/// Room for further messages of a flow, computed from its collector's last known progress.
class Room {
 public:
  Room(const Flow& flow, const Point& point)
      : flow_(flow), window_(point.window), batch_(point.batch), received_(flow.first), lowest_(flow.first) {}
  /// Number of messages that may follow the first `sent`, at most `n` and at most a batch.
  std::uint64_t operator()(std::uint64_t sent, std::uint64_t n) {
    const std::uint64_t span = flow_.stamps.size();
    if (sent - received_ >= window_ || sent - lowest_ >= span) update();
    return std::min({batch_, n, window_ - (sent - received_), span - (sent - lowest_)});
  }
  /// Reads the collector's progress. operator() calls it only if there seems to be no room at all.
  void update() {
    received_ = flow_.received.load(std::memory_order_acquire);
    lowest_ = flow_.lowest_missing.load(std::memory_order_relaxed);
  }

 private:
  const Flow& flow_;
  std::uint64_t window_, batch_, received_, lowest_;
};

void fill(const Flow& flow, const Work& work, std::uint64_t sequence, const Messages& slots) {
  if (!flow.mixed()) {
    return work.payloads.fill(work.seed, message_id(flow.index, sequence), flow.payload, slots);
  }
  for (std::size_t i = 0; i < slots.count; ++i) {
    work.payloads.fill(work.seed, message_id(flow.index, sequence + i), flow.payload_of(sequence + i),
                       slots.from(i).first(1));
  }
}

/// Makes room for the stage times of the sampled messages among `count` messages.
void forget_stages(const Flow& flow, const Work& work, std::uint64_t sequence, std::uint64_t count) {
  if (!samples_one_of(work, sequence, count)) return;
  for_timed(sequence, count, work.stages->every(),
            [&](std::uint64_t sampled) { work.stages->forget(message_id(flow.index, sampled)); });
}

void note_sending(Flow& flow, const Work& work, const Pass& pass, std::uint64_t sequence, std::uint64_t now,
                  std::uint64_t own_lag = 0) {
  Stamp& stamp = flow.stamp(sequence, pass.sample_every);
  stamp.published_ns.store(now, std::memory_order_relaxed);
  if (flow.schedule != nullptr) stamp.own_lag_ns.store(own_lag, std::memory_order_relaxed);
  if (work.stages != nullptr && work.stages->samples(sequence)) {
    work.stages->mark(message_id(flow.index, sequence), Stage::sent, now);
  }
}

/// Holds back a partial batch until its first message has waited for the point's batch timeout.
class Linger {
 public:
  explicit Linger(const Point& point) : batch_(point.batch), longest_ns_(point.batch_timeout_us * 1000) {}
  /// Whether to hold back `n` messages; the first has been waiting since `since_ns`.
  bool holds(std::uint64_t n, std::uint64_t since_ns, std::uint64_t now) const {
    return longest_ns_ != 0 && n < batch_ && now < since_ns + longest_ns_;
  }
  bool wanted() const { return longest_ns_ != 0; }

 private:
  std::uint64_t batch_, longest_ns_;
};

/// Publishes the filled messages now and records each message's lag behind its due time.
void release(Flow& flow, const Work& work, const Pass& pass, std::uint64_t sequence, std::uint64_t count,
             LagAccount& behind) {
  forget_stages(flow, work, sequence, count);
  const std::uint64_t now = now_ns();
  const double own = behind.own_share(now);
  for_timed(sequence, count, pass.sample_every, [&](std::uint64_t timed) {
    const std::uint64_t due = flow.due_ns(timed), lag = now > due ? now - due : 0;
    const auto own_lag = static_cast<std::uint64_t>(own * static_cast<double>(lag));
    note_sending(flow, work, pass, timed, now, own_lag);
    flow.send_lag.record(lag);
    flow.own_lag.record(own_lag);
  });
  behind.wait(now);
  flow.producer->publish(count);
  flow.sent.store(sequence + count, std::memory_order_release);
}

}  // namespace

void send_closed(Flow& flow, const Work& work, const Pass& pass, const std::atomic<bool>& stop) {
  const std::uint64_t start = flow.first;
  const std::uint64_t share = pass.messages / flow.producers + (flow.index < pass.messages % flow.producers ? 1 : 0);
  const std::uint64_t limit = pass.messages == 0 ? kSequenceMask : start + share;
  std::uint64_t sent = start;
  Room room(flow, work.point);
  const Linger linger(work.point);
  std::uint64_t room_since = 0;  // when there was room for the next message; 0: no room, or not needed
  Backoff backoff;
  while (!stop.load(std::memory_order_relaxed) && sent < limit) {
    const std::uint64_t n = room(sent, limit - sent);
    const Messages slots = n == 0 ? Messages{} : flow.producer->reserve(n);
    if (slots.empty()) {
      flow.producer->progress();
      backoff.wait();
      continue;
    }
    if (linger.wanted()) {
      const std::uint64_t checked = now_ns();
      if (room_since == 0) room_since = checked;
      if (n < limit - sent && linger.holds(n, room_since, checked)) {
        flow.producer->progress();
        backoff.wait();
        room.update();
        continue;
      }
    }
    backoff.reset();
    std::optional<NvtxRange> range;
    if (samples_one_of(work, sent, slots.count)) range.emplace("produce");
    fill(flow, work, sent, slots);
    forget_stages(flow, work, sent, slots.count);
    std::uint64_t now = std::exchange(room_since, 0);  // messages held back are timed from this moment
    for_timed(sent, slots.count, pass.sample_every, [&](std::uint64_t timed) {
      if (now == 0) now = now_ns();
      note_sending(flow, work, pass, timed, now);
    });
    flow.producer->publish(slots.count);
    sent += slots.count;
    flow.sent.store(sent, std::memory_order_release);
  }
}

void send_open(Flow& flow, const Work& work, const Pass& pass, const std::atomic<bool>& stop) {
  const std::uint64_t end = flow.first + flow.due.size();
  std::uint64_t sent = flow.first, due_end = sent;  // all messages before `due_end` are due
  std::uint64_t filled = 0;                         // messages that are ready to be published
  const std::uint64_t began = now_ns();
  LagAccount behind(began);
  bool blocked = false;
  Room room(flow, work.point);
  const Linger linger(work.point);
  Backoff backoff;
  /// Prepares up to `n` messages; returns whether any are ready. If a message was prepared before it was due, adds only
  /// as many messages as take less time to fill than to publish.
  const auto prepare = [&](std::uint64_t n) {
    constexpr std::uint64_t kQuicklyMade = 1024;  // bytes
    if (filled != 0) n = std::min(n, filled + kQuicklyMade / stride_of(flow.payload));
    n = n <= filled ? n : room(sent, n);
    const Messages slots = n <= filled ? Messages{} : flow.producer->reserve(n);
    if (slots.count > filled) {
      fill(flow, work, sent + filled, slots.from(filled));
      filled = slots.count;
    }
    return filled != 0;
  };
  while (!stop.load(std::memory_order_relaxed) && sent < end) {
    const std::uint64_t now = now_ns();
    if (!blocked) behind.go_on(now);  // after publishing
    while (due_end < end && due_end < sent + work.point.batch && flow.due_ns(due_end) <= now) ++due_end;
    if (due_end == sent) {
      // Prepare the next message now, so that filling it delays none. With a batch timeout, messages wait anyway.
      if (filled == 0 && !linger.wanted()) prepare(1);
      flow.producer->progress();
      wait_for_due(flow.due_ns(sent) - now, backoff);
      const std::uint64_t after = now_ns();
      ++flow.polls;
      flow.polling_ns += after - now;
      behind.caught_up(after);
      continue;
    }
    if (due_end < end && linger.holds(due_end - sent, flow.due_ns(sent), now)) {
      behind.wait(now);  // requested by the point, so it is not the generator's own lag
      flow.producer->progress();
      backoff.wait();
      continue;
    }
    if (!prepare(due_end - sent)) {
      blocked = true;
      behind.wait(now);
      flow.producer->progress();
      backoff.wait();
      continue;
    }
    backoff.reset();
    if (blocked) flow.blocked_ns += behind.go_on(now_ns());
    blocked = false;
    std::optional<NvtxRange> range;
    if (samples_one_of(work, sent, filled)) range.emplace("produce");
    release(flow, work, pass, sent, filled, behind);
    sent += filled;
    filled = 0;
    due_end = std::max(due_end, sent);
  }
  if (blocked) flow.blocked_ns += behind.go_on(now_ns());
  flow.unsent = end - sent;
  flow.sending_ns = now_ns() - began;
}

}  // namespace feedrate
