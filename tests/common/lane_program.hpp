#pragma once
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/ring/flagged_poll.hpp"
#include "common/ring/lane_ends.hpp"
#include "tests/support/explorer.hpp"

/// The ring protocol as a program for the explorer: a producer, pollers and a collector on one lane of a few slots.
namespace feedrate::test {

struct LaneSetup {
  std::uint64_t capacity = 2;
  std::uint64_t messages = 4;
  unsigned pollers = 1;
  unsigned mirrors = 1;
  Notify notify = Notify::counter;
  ResultOrder results = ResultOrder::in_order;
  std::uint64_t publish = 1;  ///< messages published at once
  std::uint64_t poll = 2;
  unsigned sharing = 0;           ///< number of pollers that share the waiting messages of a poll; 0: all pollers
  std::uint64_t max_flagged = 1;  ///< maximum number of flagged messages read in one poll
  bool hints = true;              ///< false: polls see an old cursor, so that nothing is claimed ahead
  bool drains = true;             ///< the stop request follows the last message; false: it follows the last result
  bool alike = true;              ///< interchangeable pollers are explored in only one order
  bool parks = false;             ///< pollers may leave whenever they find nothing, and are called back later
};

inline constexpr std::size_t kPayload = 8;
inline constexpr std::uint32_t kStride = stride_of(kPayload);
inline constexpr std::uint32_t kUnits = units_of(sizeof(Header) + kPayload);
inline constexpr std::uint32_t kSlotUnits = 4;
constexpr std::uint64_t payload_of(std::uint64_t id) { return 0x100 + id; }
constexpr std::uint64_t result_of(std::uint64_t payload) { return payload + 0x1000; }

/// A lane's memory, declared to an explorer. Pollers that are called back use the second LaneState.
struct LaneWords {
  static constexpr std::size_t kMaxSlots = 4, kMaxMirrors = 2;

  LaneWords(Explorer& explorer, const LaneSetup& setup) {
    view.ring = ring_at(cursors, in, out, kStride, kStride, setup.capacity);
    view.parking = &parking;
    view.notify = setup.notify;
    view.results = setup.results;
    const auto one = Explorer::Word::one_writer, plain = Explorer::Word::plain;
    const auto pollers = setup.pollers > 1 || setup.parks ? Explorer::Word::many_writers : one;
    explorer.declare(&done, "done");
    explorer.declare(&cursors.published.value, "published");
    explorer.declare(&cursors.released.value, "released");
    const std::string numbers[] = {"0", "1", "2", "3"};
    for (unsigned i = 0; i < (setup.parks ? 2 : 1); ++i) {
      const std::string which = setup.parks ? " of generation " + numbers[i] : "";
      explorer.declare(&state[i].taken, "taken" + which, pollers);
      explorer.declare(&state[i].present, "present" + which, pollers, {setup.pollers, 0});
    }
    explorer.declare(&parking.position, "position", pollers);
    explorer.declare(&parking.parked, "parked", pollers);
    if (setup.parks) explorer.declare(&go, "go");
    if (setup.notify == Notify::flags) {
      view.in_units = view.out_units = units_of(kStride);
      view.in_slot_units = view.out_slot_units = kSlotUnits;
      view.mirrors = setup.mirrors;
      for (unsigned mirror = 0; mirror < setup.mirrors; ++mirror) {
        view.flagged_in[mirror] = flagged_in + mirror * setup.capacity * view.in_slot_units;
      }
      view.flagged_out = flagged_out;
      for (std::uint64_t slot = 0; slot < setup.capacity; ++slot) {
        for (unsigned unit = 0; unit < kUnits; ++unit) {
          for (unsigned mirror = 0; mirror < setup.mirrors; ++mirror) {
            explorer.declare(view.unit_in(slot, mirror) + unit,
                             "in " + numbers[slot] + "." + numbers[unit] + " mirror " + numbers[mirror]);
          }
          explorer.declare(view.unit_out(slot) + unit, "out " + numbers[slot] + "." + numbers[unit], pollers);
        }
      }
      return;
    }
    if (setup.results == ResultOrder::as_finished) {
      view.finished = finished;
    } else {
      view.ends = ends;
      explorer.declare(&cursors.completed.value, "completed");
    }
    for (std::uint64_t slot = 0; slot < setup.capacity; ++slot) {
      if (view.finished != nullptr) explorer.declare(&finished[slot], "finished " + numbers[slot], pollers);
      if (view.ends != nullptr) explorer.declare(&ends[slot], "end " + numbers[slot], pollers);
      explorer.declare(view.ring.in_slot(slot), "id in " + numbers[slot], plain);
      explorer.declare(view.ring.in_slot(slot) + sizeof(Header), "payload in " + numbers[slot], plain);
      explorer.declare(view.ring.out_slot(slot), "id out " + numbers[slot], plain);
      explorer.declare(view.ring.out_slot(slot) + sizeof(Header), "payload out " + numbers[slot], plain);
    }
  }

  LaneView view;
  RingCursors cursors;
  LaneParking parking;
  LaneState state[2];
  std::uint64_t done;  // all results have arrived
  std::uint64_t go;    // command to the second generation: 1 serve, 2 end
  std::uint64_t ends[kMaxSlots];
  std::uint32_t finished[kMaxSlots];
  alignas(16) std::byte in[kMaxSlots * kStride], out[kMaxSlots * kStride];
  alignas(kSlotUnits * sizeof(Unit)) Unit flagged_in[kMaxMirrors * kMaxSlots * kSlotUnits];
  alignas(kSlotUnits * sizeof(Unit)) Unit flagged_out[kMaxSlots * kSlotUnits];
};

/// The memory of a user's message: shared memory if notified by counter, a private copy if notified by flags.
template <class Memory>
struct SlotOf {
  bool shared;
  std::byte* at;

  void set(std::uint64_t id, std::uint64_t payload) const {
    if (shared) {
      Memory::store_plain(at, id);
      Memory::store_plain(at + sizeof(Header), payload);
      return;
    }
    *reinterpret_cast<Header*>(at) = {id, kPayload, 0};
    std::memcpy(at + sizeof(Header), &payload, sizeof payload);
  }
  std::pair<std::uint64_t, std::uint64_t> get() const {
    if (shared) {
      const std::uint64_t id = Memory::load_plain(at);
      return {id, Memory::load_plain(at + sizeof(Header))};
    }
    std::uint64_t payload = 0;
    std::memcpy(&payload, at + sizeof(Header), sizeof payload);
    return {reinterpret_cast<const Header*>(at)->id, payload};
  }
};

/// A program with a producer, pollers and a collector on one lane.
template <class Memory>
class LaneProgram : public ModelProgram {
 public:
  LaneProgram(LaneWords& words, const LaneSetup& setup)
      : words_(words),
        view_(words.view),
        setup_(setup),
        producer_(words.view, setup.publish),
        collector_(words.view, setup.poll) {}

  std::vector<ModelThread> threads() override {
    std::vector<ModelThread> all;
    all.push_back({"producer", [this] { produce(); }});
    all.push_back({"collector", [this] { collect(); }});
    for (unsigned p = 0; p < setup_.pollers; ++p) {
      // If there are several mirrors, each poller reads its own.
      all.push_back({"poller " + std::to_string(p), [this, p] { serve(words_.state[0], p, setup_.parks); },
                     setup_.mirrors == 1 && setup_.alike});
    }
    if (setup_.parks) all.push_back({"later", [this] { serve_later(); }});
    return all;
  }

 protected:
  SlotOf<Memory> user_slot(const std::byte* at) const {
    return {view_.notify == Notify::counter, const_cast<std::byte*>(at)};
  }
  static void require(bool right, const char* what) {
    if (!right) Explorer::current().fail(what);
  }

  /// Waits after a poll that found nothing. The thread is at the head of its loop; `state` is all that the thread
  /// knows.
  static void wait(std::uint64_t state) {
    Explorer::current().mark(state);
    Memory::pause();
  }

  void produce() {
    while (sent_ < setup_.messages) {
      Explorer::current().mark(state_of(sent_, producer_));
      if (!produce_some()) wait(state_of(sent_, producer_));
    }
    if (view_.notify == Notify::counter && setup_.drains) return stop_lane<Memory>(view_, kStopWhenDone);
    while (Memory::load_acquire(words_.done) == 0) wait(1);
    stop_lane<Memory>(view_, kStopNow);
  }
  bool produce_some() {
    const Messages room = producer_.reserve(std::min(setup_.publish, setup_.messages - sent_));
    for (std::size_t i = 0; i < room.count; ++i, ++sent_) {
      user_slot(room.base + i * room.stride).set(sent_, payload_of(sent_));
    }
    if (!room.empty()) producer_.publish(room.count);
    return !room.empty();
  }

  void serve(LaneState& state, unsigned poller, bool may_leave) {
    BasicLaneServer<Memory> server(view_, &state);
    BasicFlaggedPoll<Memory> flagged_poll(view_, poller % view_.mirrors,
                                          static_cast<std::uint32_t>(setup_.max_flagged));
    while (true) {
      Explorer::current().mark(state_of(server, flagged_poll));
      const Poll polled = view_.notify == Notify::flags ? serve_flagged(server, flagged_poll) : serve_counted(server);
      if (polled == Poll::gone) break;
      if (polled == Poll::claimed) continue;
      if (may_leave && !flagged_poll.holds() && Explorer::current().choose(2) == 1) {
        server.leave(server.next());
        continue;
      }
      wait(state_of(server, flagged_poll));
    }
    server.depart();
  }
  Poll serve_counted(BasicLaneServer<Memory>& server) {
    Claim claim;
    const Poll polled = server.poll(2, setup_.sharing != 0 ? setup_.sharing : setup_.pollers, claim);
    if (polled != Poll::claimed) return polled;
    Explorer::current().mark(state_of(server, claim));
    for (std::uint64_t n = claim.first; n < claim.first + claim.count; ++n) {
      const auto [id, payload] = user_slot(view_.ring.in_slot(n)).get();
      require(id == n && payload == payload_of(n), "a poller read a message that it did not claim");
      user_slot(view_.ring.out_slot(n)).set(id, result_of(payload));
    }
    Explorer::current().mark(state_of(server, claim, 1));
    if (view_.results == ResultOrder::in_order) {
      server.complete(claim);
    } else {
      for (std::uint64_t n = claim.first; n < claim.first + claim.count; ++n) server.finish(n);
    }
    return polled;
  }
  static constexpr std::uint64_t kMaxPolled = 2;
  Poll serve_flagged(BasicLaneServer<Memory>& server, BasicFlaggedPoll<Memory>& flagged_poll) {
    alignas(16) std::byte messages[kMaxPolled * kStride + sizeof(Unit)] = {};
    typename BasicFlaggedPoll<Memory>::Found found;
    if (const Poll polled = flagged_poll(server, messages, found); polled != Poll::claimed) return polled;
    const Claim& claim = found.claim;
    Explorer::current().mark(state_of(server, flagged_poll, claim));
    for (std::uint64_t n = claim.first; n < claim.first + claim.count; ++n) {
      std::byte* const message = found.at + (n - claim.first) * kStride;
      const auto [id, payload] = user_slot(message).get();
      require(id == n && payload == payload_of(n), "a poller read a message that it did not claim");
      user_slot(message).set(id, result_of(payload));
      store_flagged<Memory>(view_.unit_out(n), n, message, kUnits);
    }
    return Poll::claimed;
  }

  void serve_later() {
    while (true) {
      const std::uint64_t go = Memory::load_acquire(words_.go);
      if (go == 1) return serve(words_.state[1], 0, false);
      if (go == 2) return;
      wait(0);
    }
  }

  std::uint64_t collector_state() const { return state_of(received_, arrived_, go_, collector_); }
  void collect() {
    while (received_ < setup_.messages) {
      Explorer::current().mark(collector_state());
      if (!collect_some()) wait(collector_state());
    }
    if (setup_.parks && go_ == 0) Memory::store_release(words_.go, 2);
    Memory::store_release(words_.done, 1);
  }
  virtual bool collect_some() {
    const ConstMessages results = collector_.poll(setup_.poll);
    for (std::size_t i = 0; i < results.count; ++i, ++received_) {
      take(user_slot(results.base + i * results.stride).get());
    }
    if (!results.empty()) collector_.release(results.count);
    return !results.empty() || (setup_.parks && go_ == 0 && wake());
  }
  void take(const std::pair<std::uint64_t, std::uint64_t>& result) {
    const auto [id, payload] = result;
    require(id < setup_.messages && payload == result_of(payload_of(id)), "a result is wrong");
    require(setup_.results == ResultOrder::as_finished || id == received_, "a result is out of order");
    require((arrived_ >> id & 1) == 0, "a result arrived twice");
    arrived_ |= std::uint64_t{1} << id;
  }
  /// Wakes the pollers as GpuRing::wake does. A kernel launch orders all earlier stores before the kernel.
  bool wake() {
    if (Memory::load_acquire(words_.parking.parked) == 0) return false;
    const std::uint64_t position = Memory::load_relaxed(words_.parking.position);
    if ((Memory::load_relaxed(*view_.ring.published) & kCountMask) == position) return false;
    Memory::store_release(words_.parking.parked, 0);
    Memory::store_relaxed(words_.state[1].taken, position);
    Memory::store_relaxed(words_.state[1].present, 1);
    Memory::store_release(words_.go, go_ = 1);
    return true;
  }

  LaneWords& words_;
  LaneView view_;
  LaneSetup setup_;
  BasicLaneProducer<Memory> producer_;
  BasicLaneCollector<Memory> collector_;
  std::uint64_t sent_ = 0, received_ = 0, arrived_ = 0, go_ = 0;
};

}  // namespace feedrate::test
