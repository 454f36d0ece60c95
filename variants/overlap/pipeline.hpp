#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/axes.hpp"
#include "common/device/device.hpp"
#include "common/registry.hpp"
#include "kernels/stages/stage_kernel.hpp"

namespace feedrate {

/// The kind of work that a stage does.
enum class StageRole { generate, transform, reduce, copy_in, copy_out };
constexpr bool is_copy(StageRole role) { return role == StageRole::copy_in || role == StageRole::copy_out; }

struct StagePlan {
  std::string name;
  StageRole role;
};

struct PipelineEntry {
  std::string description;
  std::vector<Axis> axes = {};  ///< the pipeline's own axes
  /// The stages in order, at least two. The first stage takes its item from the host or generates it; the last stage
  /// produces a result.
  std::function<std::vector<StagePlan>(const Values& own)> stages;
};
using Pipelines = Registry<PipelineEntry>;
using PipelineRegistration = Registration<PipelineEntry>;

/// The parameters of a Pipeline.
struct PipelineShape {
  std::vector<StagePlan> stages;
  std::vector<std::uint32_t> rounds;  ///< cost of each stage; ignored for copies
  std::uint64_t words = 0;            ///< words per item
  unsigned blocks = 1;                ///< blocks per kernel
  unsigned items = 1;                 ///< maximum number of items in a run
};

/// Whether a kernel that is launched early waits for its predecessor.
enum class EarlyKernels { wait, do_not_wait };

/// A chain of stages with all items of a run: the items' sources, the work on them, and the places of their results.
/// The buffers between the stages belong to the Strategy that runs the pipeline. Calls throw Failure if the device
/// reports an error.
class Pipeline {
 public:
  Pipeline(PipelineShape, Device&, EarlyKernels = EarlyKernels::wait);

  const PipelineShape& shape() const { return shape_; }
  unsigned stages() const { return static_cast<unsigned>(shape_.stages.size()); }
  const StagePlan& stage(unsigned s) const { return shape_.stages[s]; }
  /// A stage's work, for a strategy that does it in its own kernel.
  StageWork work(unsigned s) const;
  /// Size of an item in a buffer between two stages.
  std::size_t bytes() const { return item_bytes(shape_.words); }

  /// Prepares the next run of `items` items: assigns new ids and clears the results.
  void begin(unsigned items);
  const std::byte* source(unsigned item) const;
  std::byte* result(unsigned item) const;
  /// Queues a stage's work on an item. It reads `in` and writes `out`: buffers, the item's source for stage 0, or the
  /// item's result for the last stage. `early`: use Stream::launch_early.
  void enqueue(Stream&, unsigned stage, const std::byte* in, std::byte* out, bool early = false) const;
  /// Adds the same work to a graph as a node.
  Graph::Node add(Graph&, unsigned stage, const std::byte* in, std::byte* out,
                  std::span<const Graph::Node> after) const;
  /// The outcome of a run: the number of items with a wrong result, and a description of the first error.
  struct Verdict {
    unsigned wrong = 0;
    std::string first;
  };
  /// Checks the results of a run whose work is complete.
  Verdict verify();

 private:
  bool brings_items() const { return shape_.stages.front().role == StageRole::copy_in; }
  bool fetches_items() const { return shape_.stages.back().role == StageRole::copy_out; }
  std::size_t source_bytes() const { return brings_items() ? bytes() : sizeof(std::uint64_t); }
  std::size_t result_bytes() const { return fetches_items() ? bytes() : sizeof(ItemHeader); }
  std::uint64_t words_sum(const std::byte* item) const;

  PipelineShape shape_;
  std::vector<StageKernel> kernels_;    // indexed by stage; unused for copies
  Buffer host_sources_, host_results_;  // pinned
  Buffer sources_, results_;            // in device memory, if items are generated or summed there
  std::unique_ptr<Stream> stream_;      // for copies between runs
  ItemSums sums_;
  std::uint64_t first_id_ = 0;
  unsigned items_ = 0;
};

}  // namespace feedrate
