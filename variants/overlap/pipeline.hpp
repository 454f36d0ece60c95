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

/// How a stage is done.
enum class StageRole { generate, transform, reduce, copy_in, copy_out };
constexpr bool is_copy(StageRole role) { return role == StageRole::copy_in || role == StageRole::copy_out; }

struct StagePlan {
  std::string name;
  StageRole role;
};

struct PipelineEntry {
  std::string description;
  std::vector<Axis> axes = {};  ///< of its own
  /// Its stages in order, at least two. The first takes its item from the host or makes it, the last gives a result.
  std::function<std::vector<StagePlan>(const Values& own)> stages;
};
using Pipelines = Registry<PipelineEntry>;
using PipelineRegistration = Registration<PipelineEntry>;

/// What makes a Pipeline.
struct PipelineShape {
  std::vector<StagePlan> stages;
  std::vector<std::uint32_t> rounds;  ///< what each stage costs; of copies not looked at
  std::uint64_t words = 0;            ///< of an item
  unsigned blocks = 1;                ///< of a stage's kernel
  unsigned items = 1;                 ///< most in a run
};

/// Says of a kernel whether it waits for the one before it, when that is up to the kernel itself.
enum class EarlyKernels { wait, do_not_wait };

/// A chain of stages with all items of a run: where each comes from, what is done with it, and where its result goes.
/// The buffers between the stages belong to whoever runs it (a Strategy). Calls throw Failure when the device refuses.
class Pipeline {
 public:
  Pipeline(PipelineShape, Device&, EarlyKernels = EarlyKernels::wait);

  const PipelineShape& shape() const { return shape_; }
  unsigned stages() const { return static_cast<unsigned>(shape_.stages.size()); }
  const StagePlan& stage(unsigned s) const { return shape_.stages[s]; }
  /// A kernel's work, for whoever does it in a kernel of its own.
  StageWork work(unsigned s) const;
  /// Bytes of an item in a buffer between two stages.
  std::size_t bytes() const { return item_bytes(shape_.words); }

  /// Makes the next run of `items` items ready: with ids that none had before, and no result there.
  void begin(unsigned items);
  const std::byte* source(unsigned item) const;
  std::byte* result(unsigned item) const;
  /// Queues a stage's work on an item. Stage 0 reads the item's source and the last one writes its result; all else
  /// lies in `in` and `out`. `early`: by Stream::launch_early.
  void enqueue(Stream&, unsigned stage, const std::byte* in, std::byte* out, bool early = false) const;
  /// The same as a node of a graph.
  Graph::Node add(Graph&, unsigned stage, const std::byte* in, std::byte* out,
                  std::span<const Graph::Node> after) const;
  /// Of the run, once all its work is done: how many items have a wrong result, and of the first what is wrong.
  struct Verdict {
    unsigned wrong = 0;
    std::string first;
  };
  Verdict verify();

 private:
  bool brings_items() const { return shape_.stages.front().role == StageRole::copy_in; }
  bool fetches_items() const { return shape_.stages.back().role == StageRole::copy_out; }
  std::size_t source_bytes() const { return brings_items() ? bytes() : sizeof(std::uint64_t); }
  std::size_t result_bytes() const { return fetches_items() ? bytes() : sizeof(ItemHeader); }
  std::uint64_t words_sum(const std::byte* item) const;

  PipelineShape shape_;
  std::vector<StageKernel> kernels_;    // by stage; of copies, one that is not used
  Buffer host_sources_, host_results_;  // pinned
  Buffer sources_, results_;            // in device memory, where items are made and summed there
  std::unique_ptr<Stream> stream_;      // for what happens between runs
  ItemSums sums_;
  std::uint64_t first_id_ = 0;
  unsigned items_ = 0;
};

}  // namespace feedrate
