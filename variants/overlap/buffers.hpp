#pragma once
#include <memory>
#include <vector>

#include "variants/overlap/strategy.hpp"

namespace feedrate {

/// The axis of strategies with a configurable number of buffers.
struct DepthOptions {
  unsigned depth = 3;
};
inline const Axes<DepthOptions>& depth_axes() {
  static const auto kAxes =
      Axes<DepthOptions>().number("depth", &DepthOptions::depth, {1, 64}, "buffers between two consecutive stages");
  return kAxes;
}
inline unsigned depth_of(const Values& own) { return depth_axes().of(own).depth; }

/// `slots` buffers between every two consecutive stages of a pipeline; item i uses slot i modulo `slots`. Stage 0 reads
/// the item's source instead of a buffer, and the last stage writes the item's result.
class Buffers {
 public:
  /// The buffers after stage s are on `device_of(s)`.
  template <class DeviceOf>
  Buffers(const Pipeline& pipeline, unsigned slots, DeviceOf&& device_of) : pipeline_(pipeline), slots_(slots) {
    for (unsigned s = 0; s + 1 < pipeline.stages(); ++s) {
      for (unsigned slot = 0; slot < slots; ++slot) {
        Device& device = device_of(s);
        device.use_in_this_thread();
        buffers_.push_back(device.allocate_device(pipeline.bytes()));
      }
    }
  }
  Buffers(const StrategyConfig& config, unsigned slots)
      : Buffers(config.pipeline, slots, [&](unsigned) -> Device& { return config.device(); }) {}

  unsigned slots() const { return slots_; }
  std::byte* behind(unsigned stage, unsigned item) const { return buffers_[stage * slots_ + item % slots_].data(); }
  const std::byte* in(unsigned stage, unsigned item) const {
    return stage == 0 ? pipeline_.source(item) : behind(stage - 1, item);
  }
  std::byte* out(unsigned stage, unsigned item) const {
    return stage + 1 == pipeline_.stages() ? pipeline_.result(item) : behind(stage, item);
  }

 private:
  const Pipeline& pipeline_;
  unsigned slots_;
  std::vector<Buffer> buffers_;
};

/// One event per buffer of Buffers.
class BufferEvents {
 public:
  BufferEvents(Device& device, unsigned stages, unsigned slots) : slots_(slots) {
    for (unsigned i = 0; i < stages * slots; ++i) events_.push_back(device.event());
  }
  Event& of(unsigned stage, unsigned item) const { return *events_[stage * slots_ + item % slots_]; }

 private:
  unsigned slots_;
  std::vector<std::unique_ptr<Event>> events_;
};

}  // namespace feedrate
