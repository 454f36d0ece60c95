#include "feedrate/ring.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <mutex>
#include <sstream>
#include <unordered_map>

#include "common/clock.hpp"
#include "common/error.hpp"
#include "common/threads/threads.hpp"
#include "kernels/serving/resident_limits.hpp"
#include "libraries/ring/lane_memory.hpp"

namespace feedrate {
namespace {

/// Concatenates the parts. (g++ 12 has no std::format.)
template <class... Parts>
std::string text(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return std::move(out).str();
}

ResidentShape shape_of(const RingConfig& config) {
  constexpr std::size_t kMaxFlagged = 128;
  ResidentShape shape{config.block, config.pollers, config.granularity, 1, {}};
  if (config.notify == Notify::flags) {
    shape.max_flagged_per_poll = static_cast<unsigned>(std::min({config.batch, config.capacity, kMaxFlagged}));
  }
  shape.idle.backs_off = config.idle == RingIdle::backoff;
  if (config.idle == RingIdle::park) {
    shape.idle.leave_after_ns = static_cast<std::uint64_t>(std::chrono::nanoseconds(config.park_after).count());
  }
  return shape;
}

/// The user's end of one lane. It restarts the pollers if they have left and no results arrive.
class AwakeLane final : public RingLane {
 public:
  AwakeLane(HostLane& lane, GpuRing& ring) : lane_(lane), ring_(ring) {}
  Messages reserve(std::size_t n) override { return lane_.reserve(n); }
  void publish(std::size_t n) override { lane_.publish(n); }
  ConstMessages poll(std::size_t n) override {
    const ConstMessages results = lane_.poll(n);
    if (results.empty() && lane_.parked()) ring_.wake();
    return results;
  }
  void release(std::size_t n) override { lane_.release(n); }

 private:
  HostLane& lane_;
  GpuRing& ring_;
};

/// The state of try_submit and wait for one lane.
struct Desk {
  std::mutex mutex;
  std::uint64_t submitted = 0;
  std::unordered_map<std::uint64_t, RingAnswer> arrived;  // keyed by sequence number
};

}  // namespace

struct GpuRing::State {
  State(Device& on, const Kernel& served, const RingConfig& shaped, const RecorderState& recorder)
      : device(on),
        work(served),
        config(shaped),
        shape(shape_of(config)),
        polled(device, config.lanes * polled_pieces(config)),
        views_memory(device.allocate_host(config.lanes * sizeof(LaneView), HostMemory::pinned)),
        views(reinterpret_cast<LaneView*>(views_memory.data()), config.lanes),
        desks(config.lanes) {
    for (LaneView& view : views) {
      lanes.push_back(make_lane(device, polled, config, recorder));
      view = lanes.back()->view();
    }
  }

  Device& device;
  const Kernel& work;
  RingConfig config;
  ResidentShape shape;
  PolledMemory polled;  // of all lanes
  Buffer views_memory;  // the kernel reads the views, so they are in pinned memory
  std::span<LaneView> views;
  std::vector<std::unique_ptr<HostLane>> lanes;
  std::vector<AwakeLane> ends;
  std::vector<Desk> desks;
  std::atomic<unsigned> next_lane{0};

  std::mutex grid;  // protects the following members
  std::vector<std::unique_ptr<Resident>> residents;
  std::uint64_t restarts = 0;
  bool started = false, stopped = false;
  std::vector<std::uint64_t> unanswered;
};

std::string why_unsupported(const RingConfig& config) {
  if (!std::has_single_bit(config.capacity) || config.capacity > (1u << 24)) {
    return text("a lane's capacity must be a power of two up to 2^24, not ", config.capacity);
  }
  if (config.lanes == 0 || config.batch == 0) return "a ring needs at least one lane and a batch of at least one";
  if (config.pollers == 0 || config.pollers > kMaxPollers || config.block % (32 * config.pollers) != 0 ||
      config.block > 1024) {
    return text(config.block, " threads cannot be split into ", config.pollers, " pollers of full warps (at most ",
                kMaxPollers, " pollers, 1024 threads)");
  }
  if (config.mirrors == 0 || config.mirrors > config.pollers) {
    return text(config.mirrors, " mirrors for ", config.pollers, " pollers: each mirror needs a poller");
  }
  if (config.notify == Notify::counter) {
    if (config.mirrors != 1) return "mirrors require notification by flags";
    if (config.slots == Slots::vram && config.results == ResultOrder::as_finished) {
      return "slots in vram require results in order";
    }
    return "";
  }
  if (config.slots == Slots::vram) return "slots in vram require notification by counter";
  const unsigned threads = config.block / config.pollers;
  const unsigned units = std::max(units_of(stride_of(config.message_bytes)), units_of(stride_of(config.result_bytes)));
  if (units > kUnitsPerThread * threads) {
    return text("a flagged slot of ", units, " units is more than a poller of ", threads, " threads reads at once");
  }
  if (2 * sizeof(Unit) * units > kStagingBytes / config.pollers) {
    return text("flagged slots of ", units, " units do not fit in the shared memory of ", config.pollers, " pollers");
  }
  return "";
}

std::string why_unsupported(const RingConfig& config, Device& device, const Kernel& work) {
  if (std::string reason = why_unsupported(config); !reason.empty()) return reason;
  // A block that does not fit waits forever for the others to end.
  const unsigned most = device.max_lanes(work, shape_of(config));
  if (config.lanes <= most) return "";
  if (most == 0) return "this work has no GPU kernel: it was not compiled by nvcc";
  return text(config.lanes, " lanes of ", config.block, " threads cannot be resident at once; this device holds ",
              most);
}

GpuRing::GpuRing(Device& device, const Kernel& work, const RingConfig& config) : GpuRing(device, work, config, {}) {}

GpuRing::GpuRing(Device& device, const Kernel& work, const RingConfig& config, const RecorderState& recorder) {
  if (const std::string reason = why_unsupported(config, device, work); !reason.empty())
    throw BadInput("gpu_ring: " + reason);
  state_ = std::make_unique<State>(device, work, config, recorder);
  for (auto& lane : state_->lanes) state_->ends.emplace_back(*lane, *this);
}

GpuRing::~GpuRing() {
  try {
    stop(RingStop::now);
  } catch (const std::exception&) {  // nothing more can be done on a broken device
  }
}

void GpuRing::start() {
  const std::lock_guard lock(state_->grid);
  if (state_->started) throw BadInput("gpu_ring: start() was called twice");
  state_->started = true;
  state_->residents.push_back(state_->device.start_resident(state_->work, state_->views, state_->shape));
}

RingLane& GpuRing::lane(unsigned index) { return state_->ends.at(index); }
unsigned GpuRing::lanes() const { return state_->config.lanes; }

std::optional<std::uint64_t> GpuRing::try_submit(std::span<const std::byte> payload) {
  if (payload.size() > state_->config.message_bytes) {
    throw BadInput(text("gpu_ring: a message has ", payload.size(), " bytes; the limit is message_bytes, ",
                        state_->config.message_bytes));
  }
  const unsigned from = state_->next_lane.fetch_add(1, std::memory_order_relaxed);
  for (unsigned tried = 0; tried < lanes(); ++tried) {
    const unsigned index = (from + tried) % lanes();
    Desk& desk = state_->desks[index];
    const std::lock_guard lock(desk.mutex);
    const Messages room = state_->lanes[index]->reserve(1);
    if (room.empty()) continue;
    const std::uint64_t id = message_id(index, desk.submitted++);
    room.header(0) = {id, static_cast<std::uint32_t>(payload.size()), 0};
    std::copy(payload.begin(), payload.end(), room.payload(0));
    state_->lanes[index]->publish(1);
    return id;
  }
  return std::nullopt;
}

RingAnswer GpuRing::wait(std::uint64_t id, std::chrono::nanoseconds timeout) {
  const unsigned index = producer_of(id);
  if (index >= lanes()) throw BadInput(text("gpu_ring: no message has the id ", id));
  Desk& desk = state_->desks[index];
  const std::uint64_t deadline = now_ns() + static_cast<std::uint64_t>(std::max<std::int64_t>(timeout.count(), 0));
  Backoff backoff;
  for (unsigned polls = 0;; ++polls) {
    bool found_any = false;
    {
      const std::lock_guard lock(desk.mutex);
      if (sequence_of(id) >= desk.submitted) throw BadInput(text("gpu_ring: no message has the id ", id));
      RingLane& lane = state_->ends[index];
      const ConstMessages results = lane.poll(state_->config.batch);
      for (std::size_t i = 0; i < results.count; ++i) {
        const Header& header = results.header(i);
        RingAnswer answer{RingStatus::ok, Fault::none, {}};
        if ((header.length & kFailed) != 0) {
          answer.status = RingStatus::failed;
          answer.fault = static_cast<Fault>(header.length & ~kFailed);
        }
        answer.payload.assign(results.payload(i), results.payload(i) + payload_bytes(header));
        desk.arrived.insert_or_assign(sequence_of(header.id), std::move(answer));
      }
      lane.release(results.count);
      found_any = !results.empty();
      if (const auto answer = desk.arrived.extract(sequence_of(id)); !answer.empty()) return std::move(answer.mapped());
    }
    if (found_any) continue;
    const bool late = now_ns() >= deadline;
    if (late || polls % 1024 == 1023) {
      check();
      const std::lock_guard lock(state_->grid);
      // A message of a stopped ring may still have a result: it may have arrived since the poll above, or be in flight.
      if (std::find(state_->unanswered.begin(), state_->unanswered.end(), id) != state_->unanswered.end()) {
        return {RingStatus::stopped, Fault::none, {}};
      }
    }
    if (late) return {};
    backoff.wait();
  }
}

void GpuRing::wake() {
  const std::lock_guard lock(state_->grid);
  State& state = *state_;
  if (state.stopped || !state.started) return;
  for (std::size_t i = 0; i < state.lanes.size(); ++i) {
    HostLane& lane = *state.lanes[i];
    if (!lane.parked() || lane.published() == lane.position()) continue;
    std::erase_if(state.residents, [](const auto& resident) { return !resident->running(); });
    lane.unpark();
    state.residents.push_back(state.device.start_resident(state.work, state.views.subspan(i, 1), state.shape));
    ++state.restarts;
  }
}

void GpuRing::check() {
  const std::lock_guard lock(state_->grid);
  State& state = *state_;
  if (state.stopped || !state.started) return;
  // Check this first: a lane that parks in the meantime is not a fault.
  const bool running =
      std::count_if(state.residents.begin(), state.residents.end(), [](auto& r) { return r->running(); }) != 0;
  const bool all_parked =
      std::all_of(state.lanes.begin(), state.lanes.end(), [](const auto& lane) { return lane->parked(); });
  if (!running && !all_parked) throw Failure("gpu_ring: the resident kernel ended unexpectedly");
}

RingStats GpuRing::stats() const {
  RingStats stats;
  for (const auto& lane : state_->lanes) {
    stats.published += lane->published();
    stats.released += lane->released();
    stats.parked_lanes += lane->parked() ? 1 : 0;
  }
  const std::lock_guard lock(state_->grid);
  stats.restarts = state_->restarts;
  return stats;
}

std::vector<std::uint64_t> GpuRing::stop(RingStop how, std::chrono::nanoseconds patience) {
  State& state = *state_;
  const auto count_missing = [&] {
    std::uint64_t missing = 0;
    for (const auto& lane : state.lanes) missing += lane->unserved().size();
    return missing;
  };
  {
    const std::lock_guard lock(state.grid);
    if (state.stopped || !state.started) return state.unanswered;
  }
  if (how == RingStop::drain) {
    std::uint64_t missing = count_missing(), since = now_ns();
    Backoff backoff;
    while (missing != 0 && now_ns() - since < static_cast<std::uint64_t>(patience.count())) {
      wake();
      check();
      backoff.wait();
      const std::uint64_t now_missing = count_missing();
      if (now_missing < missing) since = now_ns();
      missing = now_missing;
    }
  }
  const std::lock_guard lock(state.grid);
  struct Open {
    std::uint64_t number, id;
  };
  std::vector<std::vector<Open>> open(state.lanes.size());  // collected before slots are marked for the stop
  for (std::size_t i = 0; i < open.size(); ++i) {
    for (const std::uint64_t n : state.lanes[i]->unserved()) open[i].push_back({n, state.lanes[i]->id_of(n)});
  }
  for (const auto& lane : state.lanes) lane->request_stop(kStopNow);
  state.residents.clear();  // waits until the kernels end
  state.stopped = true;
  for (std::size_t i = 0; i < open.size(); ++i) {
    const std::vector<std::uint64_t> left = state.lanes[i]->unserved();
    for (const Open& o : open[i]) {
      if (std::binary_search(left.begin(), left.end(), o.number)) state.unanswered.push_back(o.id);
    }
  }
  return state.unanswered;
}

unsigned GpuRing::host_threads() const {
  const std::lock_guard lock(state_->grid);
  unsigned threads = 0;
  for (const auto& resident : state_->residents) threads += resident->host_threads();
  return threads;
}

}  // namespace feedrate
