#pragma once
#include "common/nvtx_range.hpp"
#include "variants/overlap/buffers.hpp"

namespace feedrate {

/// Stages on streams, ordered by events. A stage waits until its input is ready and until the next stage has read the
/// buffer that it will write. The host waits only for the end of a run.
class StagesOnStreams : public Strategy {
 public:
  /// Stage s goes to stream s modulo `streams`.
  StagesOnStreams(const StrategyConfig& config, unsigned streams, unsigned slots)
      : pipeline_(config.pipeline),
        buffers_(config, slots),
        ready_(config.device(), config.pipeline.stages(), slots),
        read_(config.device(), config.pipeline.stages(), slots),
        waits_for_ready_(config.waits_for(kReady)),
        waits_for_free_(config.waits_for(kFree)) {
    for (unsigned i = 0; i < streams; ++i) streams_.push_back(config.device().stream());
  }

  void run(unsigned items) override {
    const unsigned stages = pipeline_.stages();
    for (unsigned item = 0; item < items; ++item) {
      for (unsigned s = 0; s < stages; ++s) {
        const NvtxRange range(pipeline_.stage(s).name);
        Stream& stream = *streams_[s % streams_.size()];
        const bool first = s == 0, last = s + 1 == stages;
        if (!first && waits_for_ready_) stream.wait(ready_.of(s - 1, item));
        // Wait until the next stage has read the buffer. In the first round it holds nothing, so there is no wait.
        if (!last && waits_for_free_ && item >= buffers_.slots()) stream.wait(read_.of(s, item));
        pipeline_.enqueue(stream, s, buffers_.in(s, item), buffers_.out(s, item));
        if (!last) stream.record(ready_.of(s, item));
        if (!first) stream.record(read_.of(s - 1, item));
      }
    }
    for (const auto& stream : streams_) stream->synchronize();
  }

 private:
  const Pipeline& pipeline_;
  Buffers buffers_;
  BufferEvents ready_, read_;  // for the buffer after a stage
  bool waits_for_ready_, waits_for_free_;
  std::vector<std::unique_ptr<Stream>> streams_;  // last: their destructors wait for work that uses the buffers
};

}  // namespace feedrate
