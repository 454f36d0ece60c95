#include <array>

#include "variants/feeding/transfers/bounds.hpp"
#include "variants/feeding/transfers/grouped.hpp"

namespace feedrate {
namespace {

/// One graph per group, with parallel chains, one per batch, so that one call forks into all chains and joins them
/// again. Each graph is built once. Afterwards only the addresses that differ from the graph's last batches are
/// changed, and chains without a batch are disabled.
struct GraphOfChains {
  struct Chain {
    Buffer in, out;                                   ///< in device memory, for copies
    std::size_t copy_in = 0, work = 0, copy_out = 0;  ///< nodes
  };
  std::unique_ptr<Graph> graph;  // built with the group's first batch, because the addresses are unknown earlier
  std::vector<Chain> chains;
};

class GraphTransfer final : public Grouped<GraphTransfer, GraphOfChains> {
 public:
  static constexpr unsigned kMaxByItself = 8;  // a disabled chain still costs part of the launch
  struct Options {
    std::string chain = "copies";
  };
  static const Axes<Options>& chain_axes() {
    static const auto kAxes = Axes<Options>().word(
        "chain", &Options::chain, {"copies", "mapped"},
        "chain per batch in a graph: copy, kernel and copy, or one kernel that reads and writes pinned memory");
    return kAxes;
  }

  explicit GraphTransfer(const TransferConfig& config)
      : Grouped(config), mapped_(chain_axes().of(config.own).chain == "mapped") {
    for (Group& group : groups_) {
      group.own.chains.resize(coalesce_);
      if (mapped_) continue;
      for (auto& chain : group.own.chains) {
        chain.in = config.device.allocate_device(config.max_messages * config.in_stride);
        chain.out = config.device.allocate_device(config.max_messages * config.out_stride);
      }
    }
  }

  void add(Group& group, const Batch& batch) {
    GraphOfChains& own = group.own;
    if (!own.graph) build(own, batch);
    const auto& chain = own.chains[group.batches.size()];
    Graph& graph = *own.graph;
    set_excluded(own, chain, false);
    if (mapped_) return graph.change(chain.work, view(batch.in.base, batch.out.base, batch));
    graph.change(chain.copy_in, Copy{chain.in.data(), batch.in.base, batch.in.count * batch.in.stride});
    graph.change(chain.work, view(chain.in.data(), chain.out.data(), batch));
    graph.change(chain.copy_out, Copy{batch.out.base, chain.out.data(), batch.out.count * batch.out.stride});
  }
  void launch(Group& group) {
    for (std::size_t i = group.batches.size(); i < group.own.chains.size(); ++i) {
      set_excluded(group.own, group.own.chains[i], true);
    }
    group.own.graph->launch(*group.stream);
  }

 private:
  /// Builds all chains, initially with the first batch's addresses.
  void build(GraphOfChains& own, const Batch& batch) {
    own.graph = config_.device.graph();
    for (auto& chain : own.chains) {
      if (mapped_) {
        chain.work = own.graph->add(config_.workload, view(batch.in.base, batch.out.base, batch), config_.block, {});
        continue;
      }
      const std::size_t in_bytes = batch.in.count * batch.in.stride, out_bytes = batch.out.count * batch.out.stride;
      chain.copy_in = own.graph->add({chain.in.data(), batch.in.base, in_bytes}, Direction::to_device, {});
      chain.work = own.graph->add(config_.workload, view(chain.in.data(), chain.out.data(), batch), config_.block,
                                  std::array{chain.copy_in});
      chain.copy_out =
          own.graph->add({batch.out.base, chain.out.data(), out_bytes}, Direction::to_host, std::array{chain.work});
    }
  }
  void set_excluded(GraphOfChains& own, const GraphOfChains::Chain& chain, bool excluded) {
    own.graph->set_excluded(chain.work, excluded);
    if (mapped_) return;
    own.graph->set_excluded(chain.copy_in, excluded);
    own.graph->set_excluded(chain.copy_out, excluded);
  }

  bool mapped_;
};

bool is_mapped(const Values& own) { return GraphTransfer::chain_axes().of(own).chain == "mapped"; }

std::vector<AxisValues> graph_search() {
  std::vector<AxisValues> all = GraphTransfer::search();
  all.push_back({"chain", {"copies", "mapped"}});
  return all;
}

/// Bounds of the transfer. A worker queues parallel chains in graphs at no more than the ceiling's rate.
void limit_graph(const BoundedPoint& bounded, Bounds& bounds) {
  const bool mapped = is_mapped(bounded.point.own);
  bounds.time("graph_launch_sync_ns");
  bounds.bytes(mapped ? "sm_echo_bytes_per_second" : "copy_engine_both_bytes_per_second", bounded.slot());
  const char* const chains = mapped ? "graph_kernels_per_second" : "graph_chains_per_second";
  bounds.rate(batches_at_once(bounded.point) * ceiling_of(chains));
}

std::optional<BatchTime> batch_time_of_graph(const BoundedPoint& bounded, const Limits& limits) {
  const bool mapped = is_mapped(bounded.point.own);
  const auto chains = value_of(limits, mapped ? "graph_kernels_per_second" : "graph_chains_per_second");
  const auto empty = value_of(limits, "launch_sync_ns"), graph = value_of(limits, "graph_launch_sync_ns");
  const auto lone = value_of(limits, mapped ? "mapped_launch_sync_ns" : "copy_launch_copy_ns");
  const auto bus = bus_ns(bounded, limits, mapped ? "sm_echo_bytes_per_second" : "copy_engine_both_bytes_per_second");
  if (!chains || !empty || !graph || !lone || !bus) return std::nullopt;
  // The time of the same work in a stream, less the time that a graph launch saves compared with a kernel launch.
  return BatchTime{std::max(1e9 / *chains, *bus), *lone - *empty + *graph + (mapped ? 1 : 2) * *bus};
}

const TransferRegistration registered(
    "graph",
    {.description =
         "one graph per group of batches, with parallel chains, one per batch; built once, then only addresses change",
     .memory = HostMemory::pinned,
     .axes = joined(GraphTransfer::axes().list(), GraphTransfer::chain_axes().list()),
     .depth = GraphTransfer::depth,
     .make = make_transfer<GraphTransfer>,
     .bounds = limit_graph,
     .batch_time = batch_time_of_graph,
     // For lone messages only: no limit covers the cost of changing a graph's addresses, so for consecutive batches the
     // limits would rank such graphs above faster transfers.
     .alone = {{{"chain", std::string("mapped")}}},
     .search = graph_search()});

}  // namespace
}  // namespace feedrate
