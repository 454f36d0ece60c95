#pragma once
#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/axes.hpp"
#include "common/device/device.hpp"
#include "common/registry.hpp"
#include "kernels/ladder/product_check.hpp"

/// A ladder is a list of kernels for the same problem, from naive to fast. Each step of it, a rung, is one file that
/// registers itself and explains what it changes. Peers are libraries that solve the same problem.
namespace feedrate::ladder {

/// What a rung or a peer says about itself.
struct RungText {
  unsigned step = 0;  ///< place in the ladder, from 1; 0 for a peer
  std::string device = "cuda";
  bool repeats = true;          ///< repeats its results bit for bit
  bool one_core = false;        ///< runs on one core of the CPU; compared with peers that also do
  std::string changes = {};     ///< what differs from the rung before
  std::string reason = {};      ///< why that pays
  std::string prediction = {};  ///< what was expected before it was measured
  std::string measured = {};    ///< what it was: the machine, the problem, the rate and gain; a test checks it against
                                ///< the published page
  std::string design = {};      ///< the point that it is made for, as axes: "m=8192 n=8192 k=8192"
  bool is_peer() const { return step == 0; }
};

struct RungInfo {
  std::string name;
  RungText text;
  /// Why it cannot run on this machine or in this build; empty if it can. May load a library or run a program.
  std::function<std::string()> unavailable;
};

/// A rung or a peer, prepared for one problem.
class Runner {
 public:
  virtual ~Runner() = default;
  /// Queues the work on inputs number `copy`.
  virtual void queue(Stream&, std::size_t copy) = 0;
  /// Resources of its largest kernel; none for a library and on the CPU.
  virtual std::optional<KernelResources> resources() { return {}; }
  /// What it chose for this problem, for example an algorithm of a library.
  virtual std::map<std::string, std::string> chosen() const { return {}; }
};

/// The work of a problem, for limits.
struct Work {
  double operations = 0;  ///< a multiply-add is two
  double bytes = 0;       ///< of inputs and results, each moved once
  std::string limit;      ///< name of the limit of the arithmetic
};

/// One problem on one device: its inputs in several copies, and its results.
class Problem {
 public:
  virtual ~Problem() = default;
  virtual Work work() const = 0;
  /// Device memory for one copy of the inputs, and for results.
  virtual std::size_t input_bytes() const = 0;
  virtual std::size_t result_bytes() const = 0;
  /// Why a rung or a peer does not solve this problem on this device; empty if it does.
  virtual std::string why_unsupported(const std::string& rung) const = 0;
  /// Allocates and fills `copies` of the inputs, which differ.
  virtual void prepare(std::size_t copies, std::uint64_t seed) = 0;
  virtual std::unique_ptr<Runner> make(const std::string& rung) = 0;
  /// Runs it once on poisoned results and checks them, the memory around them, and that the inputs were not changed.
  virtual ProductVerdict verify(const std::string& rung, Runner&, std::size_t copy) = 0;
};

struct LadderEntry {
  std::string description;
  std::vector<Axis> axes;
  std::function<std::vector<RungInfo>()> rungs;  ///< by step; peers last
  std::function<std::unique_ptr<Problem>(const Values&, Device&)> make;
};
using Ladders = Registry<LadderEntry>;
using LadderRegistration = Registration<LadderEntry>;

/// The rungs of a registry, whose entries have the members `text` and `unavailable`, by step; peers last.
template <class Entry>
std::vector<RungInfo> rungs_of(const Registry<Entry>& registry) {
  std::vector<RungInfo> rungs;
  for (const auto& [name, entry] : registry.entries()) rungs.push_back({name, entry.text, entry.unavailable});
  std::ranges::stable_sort(rungs, {}, [](const RungInfo& rung) {
    return std::pair(rung.text.is_peer(), std::pair(rung.text.device == "cuda", rung.text.step));
  });
  return rungs;
}

}  // namespace feedrate::ladder
