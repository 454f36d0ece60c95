#include "experiments/harness/timeline/timeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <numeric>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/error.hpp"

namespace feedrate {
namespace {

using Kind = Activity::Kind;
constexpr std::size_t kKinds = 7;
constexpr std::array<const char*, kKinds> kCategories{"kernel", "copy", "copy", "copy", "memset", "api", "range"};

/// Start or end of an activity.
struct Edge {
  std::uint64_t ns;
  Kind kind;
  int step;  ///< 1 or -1
};

std::vector<Edge> edges_of(std::span<const Activity> activities, std::uint64_t begin_ns, std::uint64_t end_ns) {
  std::vector<Edge> edges;
  for (const auto& activity : activities) {
    const std::uint64_t from = std::max(activity.begin_ns, begin_ns), to = std::min(activity.end_ns, end_ns);
    if (!activity.on_gpu() || from >= to) continue;
    edges.push_back({from, activity.kind, 1});
    edges.push_back({to, activity.kind, -1});
  }
  std::sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) { return a.ns < b.ns; });
  return edges;
}

GpuUse::Gaps summary(std::vector<std::uint64_t> gaps) {
  if (gaps.empty()) return {};
  std::sort(gaps.begin(), gaps.end());
  const auto n = static_cast<double>(gaps.size());
  const auto quantile = [&](double q) { return gaps[static_cast<std::size_t>(std::ceil(q * n)) - 1]; };
  const double sum = std::accumulate(gaps.begin(), gaps.end(), 0.0);
  return {gaps.size(), sum / n, quantile(0.5), quantile(0.99), gaps.back()};
}

/// A JSON string. Names come from other programs' symbols and ranges, so they may contain any bytes.
std::string json_text(std::string_view text) { return dumped(text); }

/// Writes the events of a trace, one per line, without keeping them in memory, because there may be millions.
class EventWriter {
 public:
  /// Times are written relative to `zero_ns`.
  EventWriter(AtomicFile& file, std::uint64_t zero_ns) : file_(file), zero_ns_(zero_ns) {
    file_.stream() << "{\"displayTimeUnit\": \"ns\", \"traceEvents\": [";
  }

  /// `more` contains further members, each preceded by a comma.
  void event(char phase, int process, std::uint64_t track, std::uint64_t ns, std::string_view name,
             std::string_view more = {}) {
    fmt::format_to(std::back_inserter(text_),
                   "{}\n{{\"ph\": \"{}\", \"pid\": {}, \"tid\": {}, \"ts\": {}, \"name\": {}{}}}", first_ ? "" : ",",
                   phase, process, track, micros(ns - zero_ns_), json_text(name), more);
    first_ = false;
    if (text_.size() > kChunk) flush();
  }
  void name_process(int process, std::string_view name) {
    event('M', process, 1, zero_ns_, "process_name", fmt::format(", \"args\": {{\"name\": {}}}", json_text(name)));
  }
  void name_track(int process, std::uint64_t track, std::string_view name) {
    event('M', process, track, zero_ns_, "thread_name", fmt::format(", \"args\": {{\"name\": {}}}", json_text(name)));
  }
  void finish(const Json& metadata) {
    fmt::format_to(std::back_inserter(text_), "\n], \"otherData\": {}}}\n", dumped(metadata));
    flush();
    file_.commit();
  }

  /// Microseconds with all digits; a double's shortest form may have fewer.
  static std::string micros(std::uint64_t ns) { return fmt::format("{}.{:03}", ns / 1000, ns % 1000); }

 private:
  static constexpr std::size_t kChunk = 1 << 20;
  void flush() {
    file_.stream().write(text_.data(), static_cast<std::streamsize>(text_.size()));
    text_.clear();
  }

  AtomicFile& file_;
  fmt::memory_buffer text_;
  std::uint64_t zero_ns_;
  bool first_ = true;
};

enum Process { kGpu = 1, kHost = 2, kMessages = 3 };

/// Number of an activity's track. Kernels of a stream and its copies have separate tracks, because different engines
/// execute them. Never 0, which Perfetto interprets as a CPU's idle thread.
std::uint64_t track_of(const Activity& activity) {
  if (!activity.on_gpu()) return activity.thread;
  return 2 * std::uint64_t{activity.stream} + (activity.kind == Kind::kernel ? 1 : 2);
}

std::string track_name(const Activity& activity) {
  if (!activity.on_gpu()) return fmt::format("thread {}", activity.thread);
  return fmt::format("stream {} {}", activity.stream, activity.kind == Kind::kernel ? "kernels" : "copies");
}

Process process_of(const Activity& activity) { return activity.on_gpu() ? kGpu : kHost; }

void write_activity(EventWriter& out, const Activity& activity) {
  const std::uint64_t ns = std::max(activity.end_ns, activity.begin_ns) - activity.begin_ns;
  std::string args;
  if (activity.correlation != 0) args = fmt::format("\"correlation\": {}", activity.correlation);
  if (activity.bytes != 0) args += fmt::format("{}\"bytes\": {}", args.empty() ? "" : ", ", activity.bytes);
  out.event('X', process_of(activity), track_of(activity), activity.begin_ns, activity.name,
            fmt::format(", \"cat\": \"{}\", \"dur\": {}, \"args\": {{{}}}",
                        kCategories[static_cast<std::size_t>(activity.kind)], EventWriter::micros(ns), args));
}

/// Writes arrows from calls to the work that they launched. Each arrow has its own ID, because one call may launch
/// several kernels or copies.
void write_launches(EventWriter& out, std::span<const Activity> activities) {
  std::unordered_map<std::uint32_t, const Activity*> calls;  // the outermost call per correlation
  for (const auto& activity : activities) {
    if (activity.kind != Kind::api || activity.correlation == 0) continue;
    const Activity*& call = calls[activity.correlation];
    if (call == nullptr || activity.begin_ns < call->begin_ns) call = &activity;
  }
  std::uint64_t id = 0;
  for (const auto& activity : activities) {
    if (!activity.on_gpu()) continue;
    const auto found = calls.find(activity.correlation);
    if (found == calls.end()) continue;
    const Activity& call = *found->second;
    const std::string more = fmt::format(", \"cat\": \"launch\", \"id\": {}", ++id);
    out.event('s', kHost, track_of(call), call.begin_ns, "launch", more);
    // The arrow is bound to the work that encloses its time, not to the next work that begins.
    out.event('f', kGpu, track_of(activity), activity.begin_ns, "launch", more + ", \"bp\": \"e\"");
  }
}

/// Writes stages. Stages of many messages overlap on a track, so they are asynchronous events, paired by message ID.
/// Viewers match events with equal IDs by order, so the stages of one message are written in nesting order.
void write_spans(EventWriter& out, std::span<const Span> spans) {
  std::vector<const Span*> order;
  for (const auto& span : spans) order.push_back(&span);
  std::stable_sort(order.begin(), order.end(), [](const Span* a, const Span* b) {
    return std::tie(a->track, a->id, a->begin_ns, b->end_ns) < std::tie(b->track, b->id, b->begin_ns, a->end_ns);
  });
  std::uint64_t track = 0;
  const auto event = [&](char phase, const Span& span, std::uint64_t ns) {
    out.event(phase, kMessages, track, ns, span.name,
              fmt::format(", \"cat\": {}, \"id\": \"{:#x}\"", json_text(span.track), span.id));
  };
  std::vector<const Span*> open;  // open spans of one message
  const auto close_until = [&](std::uint64_t ns) {
    for (; !open.empty() && open.back()->end_ns <= ns; open.pop_back()) {
      event('e', *open.back(), std::max(open.back()->end_ns, open.back()->begin_ns));
    }
  };
  const Span* last = nullptr;
  for (const Span* span : order) {
    const bool same_track = last != nullptr && last->track == span->track;
    close_until(same_track && last->id == span->id ? span->begin_ns : std::numeric_limits<std::uint64_t>::max());
    if (!same_track) out.name_track(kMessages, ++track, span->track);
    event('b', *span, span->begin_ns);
    open.push_back(span);
    last = span;
  }
  close_until(std::numeric_limits<std::uint64_t>::max());
}

std::uint64_t earliest(std::span<const Activity> activities, std::span<const Span> spans) {
  std::uint64_t ns = std::numeric_limits<std::uint64_t>::max();
  for (const auto& activity : activities) ns = std::min(ns, activity.begin_ns);
  for (const auto& span : spans) ns = std::min(ns, span.begin_ns);
  return activities.empty() && spans.empty() ? 0 : ns;
}

}  // namespace

GpuUse gpu_use(std::span<const Activity> activities, std::uint64_t begin_ns, std::uint64_t end_ns) {
  if (begin_ns >= end_ns) return {};
  std::array<std::int64_t, kKinds> running{};
  const auto runs = [&](Kind kind) { return running[static_cast<std::size_t>(kind)] != 0; };
  std::uint64_t busy = 0, kernel = 0, copy = 0, to_device = 0, to_host = 0, overlap = 0, both = 0, idle = 0;
  double at_once = 0;
  std::vector<std::uint64_t> gaps;
  std::uint64_t now = begin_ns;
  const auto advance = [&](std::uint64_t ns) {
    const std::uint64_t passed = ns - now;
    now = ns;
    const bool copies = runs(Kind::to_device) || runs(Kind::to_host) || runs(Kind::other_copy);
    const bool anything = copies || runs(Kind::kernel) || runs(Kind::memset);
    if (anything) busy += passed;
    if (runs(Kind::kernel)) kernel += passed;
    if (copies) copy += passed;
    if (runs(Kind::to_device)) to_device += passed;
    if (runs(Kind::to_host)) to_host += passed;
    if (copies && runs(Kind::kernel)) overlap += passed;
    if (runs(Kind::to_device) && runs(Kind::to_host)) both += passed;
    for (const std::int64_t number : running) at_once += static_cast<double>(number) * static_cast<double>(passed);
    if (!anything) idle += passed;
    if (anything && idle != 0) gaps.push_back(std::exchange(idle, 0));
  };
  for (const Edge& edge : edges_of(activities, begin_ns, end_ns)) {
    advance(edge.ns);
    running[static_cast<std::size_t>(edge.kind)] += edge.step;
  }
  advance(end_ns);
  if (idle != 0) gaps.push_back(idle);
  const auto share = [all = static_cast<double>(end_ns - begin_ns)](std::uint64_t ns) {
    return static_cast<double>(ns) / all;
  };
  return {share(busy),
          share(kernel),
          share(copy),
          share(to_device),
          share(to_host),
          share(overlap),
          at_once / static_cast<double>(end_ns - begin_ns),
          share(both),
          summary(std::move(gaps))};
}

Json to_json(const GpuUse& use) {
  return {{"busy_share", use.busy},
          {"kernel_share", use.kernel},
          {"copy_share", use.copy},
          {"copy_to_device_share", use.to_device},
          {"copy_to_host_share", use.to_host},
          {"overlap_share", use.overlap},
          {"mean_at_once", use.at_once},
          {"both_directions_share", use.both_directions},
          {"idle_gaps_ns",
           {{"count", use.gaps.count},
            {"mean", use.gaps.mean_ns},
            {"p50", use.gaps.p50_ns},
            {"p99", use.gaps.p99_ns},
            {"max", use.gaps.longest_ns}}}};
}

void write_timeline(AtomicFile& file, std::span<const Activity> activities, std::span<const Span> spans,
                    const Json& metadata) {
  try {
    const std::uint64_t zero_ns = earliest(activities, spans);
    EventWriter out(file, zero_ns);
    out.name_process(kGpu, "GPU");
    out.name_process(kHost, "host");
    out.name_process(kMessages, "messages");
    std::map<std::pair<Process, std::uint64_t>, std::string> tracks;
    for (const auto& activity : activities) {
      const auto [track, added] = tracks.try_emplace({process_of(activity), track_of(activity)});
      if (added) track->second = track_name(activity);
    }
    for (const auto& [track, name] : tracks) out.name_track(track.first, track.second, name);
    for (const auto& activity : activities) write_activity(out, activity);
    write_launches(out, activities);  // after the work, because viewers keep the file's order at equal times
    write_spans(out, spans);
    Json other = metadata.is_null() ? Json::object() : metadata;
    other["zero_ns"] = zero_ns;
    out.finish(other);
  } catch (const std::system_error& error) {
    throw Failure(fmt::format("could not write the timeline to '{}': {}", file.path().string(), reason_of(error)));
  }
}

}  // namespace feedrate
