#pragma once
#include "common/nvtx_range.hpp"
#include "variants/overlap/buffers.hpp"

namespace feedrate {

/// All stages of all items run in order on one stream, with one buffer between two consecutive stages. `early`: each
/// kernel is launched before its predecessor has ended and itself waits for that predecessor.
template <bool early>
class OneStreamForAll final : public Strategy {
 public:
  explicit OneStreamForAll(const StrategyConfig& config)
      : pipeline_(config.pipeline), buffers_(config, 1), stream_(config.device().stream()) {}

  void run(unsigned items) override {
    for (unsigned item = 0; item < items; ++item) {
      for (unsigned s = 0; s < pipeline_.stages(); ++s) {
        const NvtxRange range(pipeline_.stage(s).name);
        pipeline_.enqueue(*stream_, s, buffers_.in(s, item), buffers_.out(s, item), early);
      }
    }
    stream_->synchronize();
  }

 private:
  const Pipeline& pipeline_;
  Buffers buffers_;
  std::unique_ptr<Stream> stream_;
};

}  // namespace feedrate
