#pragma once
#include <memory>
#include <string>
#include <vector>

#include "experiments/handoff/reader.hpp"
#include "experiments/harness/measure/histogram.hpp"
#include "kernels/stages/item.hpp"
#include "kernels/stages/stage_kernel.hpp"

namespace feedrate::handoff {

/// A point of the experiment.
struct Options {
  std::string way = "store", device = "auto", use = "cached", to = "same", reach = "map";
  std::size_t bytes = 1 << 20;
  unsigned tensors = 1, readers = 1;
};

inline const Entry& entry_of(const Options& options) { return Ways::instance().get("--way", options.way); }

/// Results of a repetition.
struct Seen {
  Histogram handoff, start, create, destroy;
  unsigned verified = 0, wrong = 0;
  std::string first_wrong;
};

/// The exporter's side of one cell: its tensors and the processes that read them.
class Rounds {
 public:
  using Readers = std::vector<std::unique_ptr<ReaderProcess>>;
  Rounds(const Options&, const Setting&, Device&, Readers&);
  Rounds(const Rounds&) = delete;
  Rounds& operator=(const Rounds&) = delete;
  ~Rounds();

  /// Hands over all tensors once. `seen` receives the results; if it is null, nothing is recorded.
  void hand_over(Seen* seen);
  /// Releases all tensors, first in the readers, then in the exporter.
  void let_go(Seen* seen);

 private:
  static constexpr std::size_t kIdBytes = 64;

  void create(Seen* seen);
  /// Fills all tensors on the exporter's device with content that no earlier round had.
  void write();
  void check(Seen& seen) const;

  const Options options_;
  const Setting setting_;
  std::unique_ptr<Exporter> exporter_;
  std::uint64_t words_;
  ItemSums sums_;
  StageKernel kernel_;
  Buffer ids_, device_ids_;
  std::vector<std::byte*> places_;
  std::vector<Read> read_;
  std::uint64_t first_id_ = 1, written_ = 0;
  std::unique_ptr<Stream> stream_;
  Readers& readers_;
};

}  // namespace feedrate::handoff
