#pragma once
#include <cstdint>
#include <span>
#include <string>
#include "experiments/harness/json.hpp"
#include "experiments/harness/whole_file.hpp"

namespace feedrate {

/// Something that the GPU, a CUDA call or an NVTX range was busy with; times are of the host's clock (now_ns()).
struct Activity {
  enum class Kind { kernel, to_device, to_host, other_copy, memset, api, range };
  Kind kind = Kind::kernel;
  std::string name;
  std::uint64_t begin_ns = 0, end_ns = 0;
  std::uint32_t stream = 0;       ///< the GPU's
  std::uint32_t thread = 0;       ///< the host's: the system's id of the thread, for `api` and `range`
  std::uint32_t correlation = 0;  ///< what a call and the work that it launched have in common; 0 without
  std::uint64_t bytes = 0;        ///< of copies and memsets

  bool on_gpu() const { return kind != Kind::api && kind != Kind::range; }
  bool copies() const { return kind == Kind::to_device || kind == Kind::to_host || kind == Kind::other_copy; }
};

/// How the GPU spent a time: shares of it, and the gaps in which it did nothing. A kernel that polls is work too, so a
/// resident kernel makes `busy` and `kernel` 1, and `overlap` what is copied.
struct GpuUse {
  double busy = 0;  ///< with anything: kernels, copies, memsets
  double kernel = 0;
  double copy = 0;  ///< in any direction
  double to_device = 0, to_host = 0;
  double overlap = 0;          ///< with a kernel and a copy at once
  double at_once = 0;          ///< how many kernels and copies were under way, on average
  double both_directions = 0;  ///< with copies to the device and to the host at once
  struct Gaps {
    std::uint64_t count = 0;
    double mean_ns = 0;
    std::uint64_t p50_ns = 0, p99_ns = 0, longest_ns = 0;
  } gaps;  ///< those before the first work and after the last are among them
};
/// Of the time from `begin_ns` to `end_ns`: what reaches out of it is clipped. All zero when that time is empty.
GpuUse gpu_use(std::span<const Activity>, std::uint64_t begin_ns, std::uint64_t end_ns);
Json to_json(const GpuUse&);

/// A stage on a message's way, as the driver timed it.
struct Span {
  std::string track;  ///< what it is shown with, for example "producer 3"
  std::string name;
  std::uint64_t begin_ns = 0, end_ns = 0;  ///< of the host's clock
  std::uint64_t id = 0;                    ///< the message's
};

/// Writes a trace that ui.perfetto.dev and chrome://tracing load: Google's Trace Event Format, as a JSON object. It
/// has the processes "GPU" (per stream a track of kernels and one of copies and memsets), "host" (a track per thread:
/// calls and NVTX ranges) and "messages" (stages), and arrows from calls to the work that they launched. `metadata`, an
/// object, is kept under `otherData`, along with the host's time that the trace calls 0. Commits the file. Throws
/// Failure when it can't be written.
void write_timeline(WholeFile&, std::span<const Activity>, std::span<const Span>, const Json& metadata);

}  // namespace feedrate
