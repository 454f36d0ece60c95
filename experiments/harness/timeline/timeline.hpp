#pragma once
#include <cstdint>
#include <span>
#include <string>
#include "experiments/harness/atomic_file.hpp"
#include "experiments/harness/json.hpp"

namespace feedrate {

/// A period of GPU work, a CUDA call or an NVTX range; times are by the host's clock (now_ns()).
struct Activity {
  enum class Kind { kernel, to_device, to_host, other_copy, memset, api, range };
  Kind kind = Kind::kernel;
  std::string name;
  std::uint64_t begin_ns = 0, end_ns = 0;
  std::uint32_t stream = 0;       ///< GPU stream
  std::uint32_t thread = 0;       ///< host thread, by the system's ID; for `api` and `range`
  std::uint32_t correlation = 0;  ///< common to a call and the work that it launched; 0: none
  std::uint64_t bytes = 0;        ///< for copies and memsets

  bool on_gpu() const { return kind != Kind::api && kind != Kind::range; }
  bool copies() const { return kind == Kind::to_device || kind == Kind::to_host || kind == Kind::other_copy; }
};

/// How the GPU was used in a period: shares of the period, and the gaps in which it was idle. A polling kernel counts
/// as work, so with a resident kernel `busy` and `kernel` are 1 and `overlap` equals `copy`.
struct GpuUse {
  double busy = 0;  ///< with kernels, copies or memsets
  double kernel = 0;
  double copy = 0;  ///< in any direction
  double to_device = 0, to_host = 0;
  double overlap = 0;          ///< with a kernel and a copy simultaneously
  double at_once = 0;          ///< mean number of kernels, copies and memsets in progress
  double both_directions = 0;  ///< with copies to the device and to the host simultaneously
  struct Gaps {
    std::uint64_t count = 0;
    double mean_ns = 0;
    std::uint64_t p50_ns = 0, p99_ns = 0, longest_ns = 0;
  } gaps;  ///< including the gaps before the first work and after the last
};
/// Use of the GPU from `begin_ns` to `end_ns`; activities are clipped to this period. All zero if the period is empty.
GpuUse gpu_use(std::span<const Activity>, std::uint64_t begin_ns, std::uint64_t end_ns);
Json to_json(const GpuUse&);

/// A stage on a message's path, as timed by the load generator.
struct Span {
  std::string track;  ///< track of the span, for example "producer 3"
  std::string name;
  std::uint64_t begin_ns = 0, end_ns = 0;  ///< by the host's clock
  std::uint64_t id = 0;                    ///< message ID
};

/// Writes a trace for ui.perfetto.dev and chrome://tracing: Google's Trace Event Format, as a JSON object. It has the
/// processes "GPU" (per stream, one track of kernels and one of copies and memsets), "host" (one track per thread, with
/// calls and NVTX ranges) and "messages" (stages), and arrows from calls to the work that they launched. `metadata`, an
/// object, is stored under `otherData`, together with the host time that corresponds to 0 in the trace. Commits the
/// file. Throws Failure if it cannot be written.
void write_timeline(AtomicFile&, std::span<const Activity>, std::span<const Span>, const Json& metadata);

}  // namespace feedrate
