#include "libraries/ring/lane_memory.hpp"

namespace feedrate {
namespace {

struct LaneWords {
  RingCursors cursors;
  alignas(128) LaneParking parking;
};

/// Payloads of at least this size start on cache lines, with the header at the end of the previous line: a warp whose
/// accesses straddle lines moves a tenth less. Smaller payloads would lose more to the padding.
constexpr std::size_t kOnLines = 2048;
std::size_t slot_stride(std::size_t payload) {
  const std::size_t stride = stride_of(payload);
  return payload < kOnLines ? stride : (stride + kLine - 1) / kLine * kLine;
}
std::size_t slots_begin(std::size_t payload) { return payload < kOnLines ? 0 : kLine - sizeof(Header); }
std::size_t slots_bytes(const RingConfig& config, std::size_t payload) {
  return config.capacity * slot_stride(payload) + slots_begin(payload);
}

/// A lane whose slots are in pinned memory, which both sides access.
class PinnedLane : public HostLane {
 public:
  PinnedLane(PolledMemory& memory, const RingConfig& config, const RecorderState& recorder) {
    const std::size_t capacity = config.capacity;
    const bool flagged = config.notify == Notify::flags;
    const auto to_device = [&](std::size_t bytes) { return memory.read_by_device(bytes); };
    const auto from_device = [&](std::size_t bytes) { return memory.written_by_device(bytes); };
    auto* words = reinterpret_cast<LaneWords*>(to_device(sizeof(LaneWords)));
    const auto stride = [&](std::size_t bytes) { return flagged ? stride_of(bytes) : slot_stride(bytes); };
    host_.ring =
        ring_at(words->cursors, nullptr, nullptr, stride(config.message_bytes), stride(config.result_bytes), capacity);
    host_.parking = &words->parking;
    host_.notify = config.notify;
    host_.results = config.results;
    host_.recorder = recorder;
    if (flagged) {
      const std::size_t in_bytes = stride_of(config.message_bytes), out_bytes = stride_of(config.result_bytes);
      const std::size_t in = flagged_slot_bytes(in_bytes), out = flagged_slot_bytes(out_bytes);
      host_.in_units = units_of(in_bytes);
      host_.out_units = units_of(out_bytes);
      host_.in_slot_units = static_cast<std::uint32_t>(in / sizeof(Unit));
      host_.out_slot_units = static_cast<std::uint32_t>(out / sizeof(Unit));
      host_.mirrors = config.mirrors;
      for (unsigned mirror = 0; mirror < config.mirrors; ++mirror) {
        host_.flagged_in[mirror] = reinterpret_cast<Unit*>(to_device(capacity * in));
      }
      host_.flagged_out = reinterpret_cast<Unit*>(from_device(capacity * out));
    } else {
      host_.ring.in = to_device(slots_bytes(config, config.message_bytes)) + slots_begin(config.message_bytes);
      host_.ring.out = from_device(slots_bytes(config, config.result_bytes)) + slots_begin(config.result_bytes);
      if (config.results == ResultOrder::as_finished) {
        host_.finished = reinterpret_cast<std::uint32_t*>(from_device(capacity * sizeof(std::uint32_t)));
      } else {
        host_.ends = reinterpret_cast<std::uint64_t*>(from_device(capacity * sizeof(std::uint64_t)));
      }
    }
    producer_.emplace(host_, config.batch);
    collector_.emplace(host_, config.batch);
  }
  LaneView view() const override { return host_; }
  void request_stop(std::uint64_t how) override { stop_lane(host_, how); }

  Messages reserve(std::size_t n) override { return producer_->reserve(n); }
  void publish(std::size_t n) override { producer_->publish(n); }
  ConstMessages poll(std::size_t n) override { return collector_->poll(n); }
  void release(std::size_t n) override { collector_->release(n); }

 private:
  std::optional<LaneProducer> producer_;
  std::optional<LaneCollector> collector_;
};

/// A lane with two sets of slots: in pinned memory, which the host accesses, and in the GPU's memory. Copy engines move
/// each published batch to the GPU, followed by the word that announces it. Results are copied back up to the first
/// incomplete claim. The host never reads the GPU's memory directly.
class VramLane final : public PinnedLane {
 public:
  VramLane(Device& device, PolledMemory& memory, const RingConfig& config, const RecorderState& recorder)
      : PinnedLane(memory, config, recorder),
        in_(device.allocate_device(slots_bytes(config, config.message_bytes))),
        out_(device.allocate_device(slots_bytes(config, config.result_bytes))),
        near_in_(in_.data() + slots_begin(config.message_bytes)),
        near_out_(out_.data() + slots_begin(config.result_bytes)),
        word_(device.allocate_device(sizeof(Cursor))),
        there_(device.stream()),
        back_(device.stream()) {
    there_->write_word(published_there(), 0);
    there_->synchronize();
    for (auto& event : events_) event = device.event();
  }
  LaneView view() const override {
    LaneView there = host_;
    there.ring.published = published_there();
    there.ring.in = near_in_;
    there.ring.out = near_out_;
    return there;
  }
  void publish(std::size_t n) override {
    const RingView& ring = host_.ring;
    const std::uint64_t first = published();
    PinnedLane::publish(n);
    const std::size_t offset = ring.slot(first) * ring.in_stride;
    there_->copy_to_device(near_in_ + offset, ring.in + offset, n * ring.in_stride);
    there_->write_word(published_there(), first + n);
  }
  void request_stop(std::uint64_t how) override { there_->write_word(published_there(), published() | how); }

  ConstMessages poll(std::size_t n) override {
    const RingView& ring = host_.ring;
    while (!copies_.empty() && events_[copies_.front().event]->ready()) {
      arrived_ = copies_.front().end;
      copies_.pop_front();
    }
    if (copies_.size() < kCopies) copy_back();
    n = std::min<std::size_t>(n, arrived_ - taken_);
    return {ring.out_slot(taken_), ring.out_stride, ring.contiguous(taken_, n)};
  }
  void release(std::size_t n) override {
    taken_ += n;
    SystemMemory::store_release(*host_.ring.released, taken_);
  }

 private:
  static constexpr std::size_t kCopies = 2;
  // Each copy costs the engine about 2 us, so small copies wait while more results are expected.
  static constexpr std::size_t kWorthCopying = 1 << 20;

  void copy_back() {
    const RingView& ring = host_.ring;
    const std::uint64_t completed = completed_from(host_, completed_, published());
    if (completed != completed_) SystemMemory::store_release(*ring.completed, completed_ = completed);
    const std::uint64_t count = ring.contiguous(asked_, completed_ - asked_);
    if (count == 0 || (count * ring.out_stride < kWorthCopying && completed_ != published() &&
                       count == completed_ - asked_ && !copies_.empty())) {
      return;
    }
    const std::size_t offset = ring.slot(asked_) * ring.out_stride;
    back_->copy_to_host(ring.out + offset, near_out_ + offset, count * ring.out_stride);
    asked_ += count;
    copies_.push_back({asked_, next_event_});
    back_->record(*events_[next_event_]);
    next_event_ = (next_event_ + 1) % kCopies;
  }
  struct Copy {
    std::uint64_t end;  // number of the message after the last one copied
    std::size_t event;
  };
  std::uint64_t* published_there() const { return reinterpret_cast<std::uint64_t*>(word_.data()); }

  Buffer in_, out_;
  std::byte *near_in_, *near_out_;  // where the slots start
  Buffer word_;
  std::unique_ptr<Event> events_[kCopies];
  std::unique_ptr<Stream> there_, back_;
  std::deque<Copy> copies_;
  std::size_t next_event_ = 0;
  std::uint64_t completed_ = 0, asked_ = 0, arrived_ = 0, taken_ = 0;
};

}  // namespace

bool HostLane::served(std::uint64_t number) const {
  if (host_.notify == Notify::flags) return SystemMemory::load_unit(*host_.unit_out(number)).flag == flag_of(number);
  return SystemMemory::load_acquire(host_.finished[host_.ring.slot(number)]) == static_cast<std::uint32_t>(number + 1);
}

std::vector<std::uint64_t> HostLane::unserved() const {
  const std::uint64_t end = published(), capacity = host_.ring.capacity;
  const bool in_order = host_.ends != nullptr;
  // Released messages have been served.
  std::uint64_t number = in_order ? completed_from(host_, SystemMemory::load_acquire(*host_.ring.completed), end)
                                  : (end > capacity ? end - capacity : 0);
  std::vector<std::uint64_t> numbers;
  for (; number < end; ++number) {
    if (in_order || !served(number)) numbers.push_back(number);
  }
  return numbers;
}

std::uint64_t HostLane::id_of(std::uint64_t number) const {
  if (host_.notify == Notify::counter) return reinterpret_cast<const Header*>(host_.ring.in_slot(number))->id;
  const Unit first = SystemMemory::load_unit(*host_.unit_in(number, 0));
  return first.data[0] | std::uint64_t{first.data[1]} << 32;
}

std::size_t polled_pieces(const RingConfig& config) {
  constexpr std::size_t kOthers = 3;  // words, results and ends
  return config.mirrors + kOthers;
}

std::unique_ptr<HostLane> make_lane(Device& device, PolledMemory& memory, const RingConfig& config,
                                    const RecorderState& recorder) {
  if (config.slots == Slots::vram) return std::make_unique<VramLane>(device, memory, config, recorder);
  return std::make_unique<PinnedLane>(memory, config, recorder);
}

}  // namespace feedrate
