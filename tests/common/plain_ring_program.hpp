#pragma once
#include "common/ring/ring.hpp"
#include "tests/support/explorer.hpp"

/// The plain ring as a program for the explorer: a producer, one server and a collector.
namespace feedrate::test {

struct PlainRingWords {
  static constexpr std::uint64_t kCapacity = 2;
  static constexpr std::uint32_t kStride = 16;

  explicit PlainRingWords(Explorer& explorer) {
    explorer.declare(&cursors.published.value, "published");
    explorer.declare(&cursors.completed.value, "completed");
    explorer.declare(&cursors.released.value, "released");
    for (std::uint64_t slot = 0; slot < kCapacity; ++slot) {
      explorer.declare(view.in_slot(slot), "in " + std::to_string(slot), Explorer::Word::plain);
      explorer.declare(view.out_slot(slot), "out " + std::to_string(slot), Explorer::Word::plain);
    }
  }

  RingCursors cursors;
  alignas(16) std::byte in[kCapacity * kStride], out[kCapacity * kStride];
  RingView view = ring_at(cursors, in, out, kStride, kStride, kCapacity);
};

class PlainRingProgram : public ModelProgram {
 public:
  explicit PlainRingProgram(PlainRingWords& words)
      : view_(words.view), producer_(view_), server_(view_), collector_(view_) {}

  std::vector<ModelThread> threads() override {
    return {{"producer", [this] { repeat(producer_, sent_, [this] { return produce_some(); }); }},
            {"server", [this] { repeat(server_, served_, [this] { return serve_some(); }); }},
            {"collector", [this] { repeat(collector_, received_, [this] { return collect_some(); }); }}};
  }

 private:
  static constexpr std::uint64_t kMessages = 5;
  static std::uint64_t payload_of(std::uint64_t number) { return 0x100 + number; }

  /// `some` returns how many messages it moved.
  template <class End, class Some>
  static void repeat(const End& end, std::uint64_t& done, Some&& some) {
    while (done < kMessages) {
      Explorer::current().mark(state_of(done, end));
      const std::uint64_t moved = some();
      done += moved;
      if (moved != 0) continue;
      Explorer::current().mark(state_of(done, end));
      ModelMemory::pause();
    }
  }
  std::uint64_t produce_some() {
    const Messages room = producer_.reserve(std::min<std::uint64_t>(2, kMessages - sent_));
    for (std::size_t i = 0; i < room.count; ++i) {
      ModelMemory::store_plain(room.base + i * room.stride, payload_of(sent_ + i));
    }
    if (!room.empty()) producer_.publish(room.count);
    return room.count;
  }
  std::uint64_t serve_some() {
    if (server_.waiting() == 0) return 0;
    const std::uint64_t number = server_.taken();
    server_.take(1);
    const std::uint64_t payload = ModelMemory::load_plain(view_.in_slot(number));
    if (payload != payload_of(number)) Explorer::current().fail("the server read the wrong message");
    ModelMemory::store_plain(view_.out_slot(number), payload + 1);
    server_.complete(1);
    return 1;
  }
  std::uint64_t collect_some() {
    const ConstMessages results = collector_.poll(1);
    if (results.empty()) return 0;
    if (ModelMemory::load_plain(results.base) != payload_of(received_) + 1) {
      Explorer::current().fail("the collector read the wrong result");
    }
    collector_.release(1);
    return 1;
  }

  RingView view_;
  BasicRingProducer<ModelMemory> producer_;
  BasicRingServer<ModelMemory> server_;
  BasicRingCollector<ModelMemory> collector_;
  std::uint64_t sent_ = 0, served_ = 0, received_ = 0;
};

}  // namespace feedrate::test
