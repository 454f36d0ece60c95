#include "variants/overlap/buffers.hpp"

namespace feedrate {
namespace {

/// The same ordering as `ring`, but as one graph of all items that is built once and launched by one call.
class GraphOfItems final : public Strategy {
 public:
  explicit GraphOfItems(const StrategyConfig& config)
      : pipeline_(config.pipeline),
        device_(config.device()),
        buffers_(config, depth_of(config.own)),
        waits_for_ready_(config.waits_for(kReady)),
        waits_for_free_(config.waits_for(kFree)),
        stream_(device_.stream()) {
    make(config.items);
  }

  void run(unsigned items) override {
    if (items != items_) make(items);
    graph_->launch(*stream_);
    stream_->synchronize();
  }

 private:
  void make(unsigned items) {
    const unsigned stages = pipeline_.stages();
    graph_ = device_.graph();
    items_ = items;
    std::vector<Graph::Node> nodes(std::size_t{items} * stages);  // indexed by item and stage
    const auto node = [&](unsigned item, unsigned s) -> Graph::Node& { return nodes[std::size_t{item} * stages + s]; };
    for (unsigned item = 0; item < items; ++item) {
      for (unsigned s = 0; s < stages; ++s) {
        std::vector<Graph::Node> after;
        if (item != 0) after.push_back(node(item - 1, s));  // a stage processes items one by one
        if (s != 0 && waits_for_ready_) after.push_back(node(item, s - 1));
        if (s + 1 != stages && item >= buffers_.slots() && waits_for_free_) {
          after.push_back(node(item - buffers_.slots(), s + 1));
        }
        node(item, s) = pipeline_.add(*graph_, s, buffers_.in(s, item), buffers_.out(s, item), after);
      }
    }
  }

  const Pipeline& pipeline_;
  Device& device_;
  Buffers buffers_;
  bool waits_for_ready_, waits_for_free_;
  unsigned items_ = 0;
  std::unique_ptr<Graph> graph_;
  std::unique_ptr<Stream> stream_;
};

const StrategyRegistration registered("graph",
                                      {.description = "the ordering of ring as one graph of all items, built once",
                                       .axes = depth_axes().list(),
                                       .waits = {kReady, kFree},
                                       .buffers = [](const Values& own) { return depth_of(own); },
                                       .make = make_strategy<GraphOfItems>});

}  // namespace
}  // namespace feedrate
