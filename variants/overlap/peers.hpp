#pragma once
#include "common/nvtx_range.hpp"
#include "variants/overlap/buffers.hpp"

namespace feedrate {

/// Stages alternate between two devices, with one stream per stage, ordered by events as in `ring`. An item crosses to
/// the next device by a copy between the two memories on a separate stream, or because the next stage's kernel reads
/// the other device's memory.
template <bool copies>
class StagesOnPeers final : public Strategy {
 public:
  explicit StagesOnPeers(const StrategyConfig& config)
      : pipeline_(config.pipeline),
        devices_(config.devices.begin(), config.devices.end()),
        buffers_(config.pipeline, depth_of(config.own), [&](unsigned s) -> Device& { return device_of(s); }),
        waits_for_ready_(config.waits_for(kReady)),
        waits_for_free_(config.waits_for(kFree)) {
    if (copies) {
      arrivals_.emplace(pipeline_, buffers_.slots(), [&](unsigned s) -> Device& { return device_of(s + 1); });
    }
    for (unsigned s = 0; s < pipeline_.stages(); ++s) {
      device_of(s).use_in_this_thread();
      stages_.push_back(make_stage(s, depth_of(config.own)));
    }
    config.device().use_in_this_thread();
  }

  void run(unsigned items) override {
    for (unsigned item = 0; item < items; ++item) {
      for (unsigned s = 0; s < pipeline_.stages(); ++s) queue(s, item);
    }
    for (unsigned s = 0; s < pipeline_.stages(); ++s) {
      device_of(s).use_in_this_thread();
      stages_[s].stream->synchronize();
      if (copies) stages_[s].way->synchronize();
    }
    devices_.front()->use_in_this_thread();
  }

 private:
  struct OfStage {
    std::vector<std::unique_ptr<Event>> ready, taken, arrived;  // indexed by slot
    std::unique_ptr<Stream> way, stream;  // last: their destructors wait for work that uses the other members
  };
  Device& device_of(unsigned s) const { return *devices_[s % devices_.size()]; }
  OfStage make_stage(unsigned s, unsigned slots) {
    OfStage made;
    for (auto* const events : {&made.ready, &made.taken, &made.arrived}) {
      for (unsigned slot = 0; slot < slots; ++slot) events->push_back(device_of(s).event());
    }
    made.way = device_of(s).stream();
    made.stream = device_of(s).stream();
    return made;
  }

  /// Each stage records its own events, because they belong to its device. `ready`: the buffer after the stage holds
  /// the item. `taken`: the stage has read its input. With copies, `arrived`: the item is on the next device, and the
  /// buffer may be overwritten.
  void queue(unsigned s, unsigned item) {
    const NvtxRange range(pipeline_.stage(s).name);
    device_of(s).use_in_this_thread();
    const unsigned slot = item % buffers_.slots();
    const bool first = s == 0, last = s + 1 == pipeline_.stages(), again = item >= buffers_.slots();
    OfStage& mine = stages_[s];
    if (!first && waits_for_ready_)
      mine.stream->wait(copies ? *stages_[s - 1].arrived[slot] : *stages_[s - 1].ready[slot]);
    if (!last && again && waits_for_free_)
      mine.stream->wait(copies ? *mine.arrived[slot] : *stages_[s + 1].taken[slot]);
    const std::byte* const in = copies && !first ? arrivals_->behind(s - 1, item) : buffers_.in(s, item);
    pipeline_.enqueue(*mine.stream, s, in, buffers_.out(s, item));
    if (!first) mine.stream->record(*mine.taken[slot]);
    if (last) return;
    mine.stream->record(*mine.ready[slot]);
    if (!copies) return;
    if (waits_for_ready_) mine.way->wait(*mine.ready[slot]);
    if (again && waits_for_free_) mine.way->wait(*stages_[s + 1].taken[slot]);
    mine.way->copy_to_peer(arrivals_->behind(s, item), buffers_.behind(s, item), pipeline_.bytes());
    mine.way->record(*mine.arrived[slot]);
  }

  const Pipeline& pipeline_;
  std::vector<Device*> devices_;
  Buffers buffers_;
  std::optional<Buffers> arrivals_;  // destinations of the copies
  bool waits_for_ready_, waits_for_free_;
  std::vector<OfStage> stages_;
};

/// Reason why the two devices cannot pass items on; empty if they can.
inline std::string why_unsupported_peers(const PipelineShape& shape, std::span<Device* const> devices) {
  for (const StagePlan& stage : shape.stages) {
    if (is_copy(stage.role)) return "strategies of two GPUs run kernels only; this pipeline copies from or to the host";
  }
  if (auto reason = devices[0]->enable_peer_access(*devices[1]); !reason.empty()) return reason;
  return devices[1]->enable_peer_access(*devices[0]);
}

}  // namespace feedrate
