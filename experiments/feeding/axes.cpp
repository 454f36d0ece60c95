#include "experiments/feeding/axes.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/hash.hpp"
#include "common/threads.hpp"
#include "common/units.hpp"
#include "experiments/feeding/mix.hpp"
#include "experiments/feeding/trace_file.hpp"
#include "variants/queue.hpp"
#include "variants/transfer.hpp"

namespace feedrate {
namespace {

constexpr std::size_t kMostPayload = std::size_t{64} << 20;
constexpr std::size_t kMostSlotMemory = std::size_t{32} << 30;  // pinned memory that one cell may take

template <class T>
Axis number(std::string name, T Point::*field, std::uint64_t least, std::uint64_t most, std::string help,
            std::string row_key = "", std::uint64_t multiple_of = 1) {
  if (row_key.empty()) row_key = name;
  const auto option = "--" + name;
  return {std::move(name), std::move(row_key), std::move(help),
          [=](Point& point, const std::string& text) {
            const auto value = parse_count(option, text);
            if (value < least || value > most || value % multiple_of != 0) {
              throw BadInput(option, text,
                             fmt::format("{} to {}{}", least, format_count(most),
                                         multiple_of == 1 ? "" : fmt::format(", a multiple of {}", multiple_of)));
            }
            point.*field = static_cast<T>(value);
          },
          [=](const Point& point) { return Json(point.*field); }};
}

/// `allowed` is asked late: members register themselves while the program loads.
template <class Names>
Axis word(std::string name, std::string Point::*field, Names allowed, std::string help) {
  const auto option = "--" + name;
  std::string row_key = name;
  std::replace(row_key.begin(), row_key.end(), '-', '_');
  return {std::move(name),
          std::move(row_key),
          std::move(help),
          [=](Point& point, const std::string& text) {
            const std::vector<std::string> names = allowed();
            if (std::find(names.begin(), names.end(), text) == names.end()) {
              throw BadInput(option, text, fmt::format("{}", fmt::join(names, ", ")));
            }
            point.*field = text;
          },
          [=](const Point& point) { return Json(point.*field); },
          false,
          [=] { return allowed(); }};
}

/// Free text that `check` refuses by throwing BadInput; "none" is always right.
Axis text(std::string name, std::string row_key, std::string Point::*field, std::string help,
          void (*check)(const std::string&)) {
  return {std::move(name),
          std::move(row_key),
          std::move(help),
          [=](Point& point, const std::string& value) {
            if (value != kNoMix) check(value);
            point.*field = value;
          },
          [=](const Point& point) { return Json(point.*field); },
          true};
}

template <class Registry>
std::vector<std::string> names_of() {
  std::vector<std::string> names;
  for (const auto& [name, entry] : Registry::instance().entries()) names.push_back(name);
  return names;
}

std::vector<Axis> make_axes() {
  std::vector<Axis> all;
  all.push_back(word("queue", &Point::queue, names_of<Queues>, "carries messages to the device and results back"));
  all.push_back(word(
      "transfer", &Point::transfer,
      [] {
        auto names = names_of<Transfers>();
        names.emplace_back(kNoTransfer);
        return names;
      },
      "moves batches to the device and back, for queues that don't do it themselves"));
  all.push_back(word("workload", &Point::workload, names_of<Workloads>, "what the device does with a message"));
  all.push_back(word(
      "device", &Point::device,
      [] {
        return std::vector<std::string>{"auto", "cpu", "cuda"};
      },
      "where it runs; auto = cuda where there is a GPU"));
  all.push_back(number("payload", &Point::payload, 0, kMostPayload, "bytes in a message", "payload_bytes"));
  all.push_back(number("batch", &Point::batch, 1, 1 << 20, "most messages handed on at once"));
  all.push_back(number("window", &Point::window, 1, 1 << 24, "messages in flight per producer; 1 = lone messages"));
  all.push_back(number("producers", &Point::producers, 0, 1024,
                       "producing threads, and as many collecting; 0 = as many as this machine's cores suffice for"));
  all.push_back(number("workers", &Point::workers, 1, 64, "threads between a broker queue and the device"));
  all.push_back(number("streams", &Point::streams, 1, 128, "device streams per worker"));
  all.push_back(number("block", &Point::block, 32, 1024, "GPU threads per block, whole warps", "block", 32));
  all.push_back(number("lanes", &Point::lanes, 0, 4096,
                       "gpu_ring: rings, one resident block each; 0 = one a batch in flight, up to 32"));
  const auto choice = [&](std::string name, std::string Point::*field, std::vector<std::string> allowed,
                          std::string help) {
    all.push_back(word(
        std::move(name), field, [allowed = std::move(allowed)] { return allowed; }, std::move(help)));
  };
  all.push_back(number("pollers", &Point::pollers, 0, 16,
                       "gpu_ring: teams of warps that poll a lane by turns; 0 = by notify and size"));
  all.push_back(number("mirrors", &Point::mirrors, 0, 16,
                       "gpu_ring: copies of flagged slots for different pollers; 0 = one each for small lone messages, "
                       "else 1"));
  choice("granularity", &Point::granularity, {"auto", "thread", "warp", "block"},
         "gpu_ring: who works on one message; auto = by size");
  choice("notify", &Point::notify, {"auto", "counter", "flags"},
         "gpu_ring: how a side learns of messages; auto = flags for a few messages, one at a time");
  choice("slots", &Point::slots, {"auto", "pinned", "vram"},
         "gpu_ring: where the GPU finds messages; auto = vram where the floors say that copies win");
  choice("results", &Point::results, {"in_order", "as_finished"}, "gpu_ring: the order in which results come back");
  choice("ring-idle", &Point::ring_idle, {"spin", "backoff", "park"}, "gpu_ring: what it does while nothing comes");
  all.push_back(number("slot-bytes", &Point::slot_bytes, 0, kMostPayload,
                       "gpu_ring: payload bytes that a slot holds; 0 = the payload's", "slot_bytes"));
  all.push_back(number("pack", &Point::pack, 1, 1 << 16, "Redis: messages per list element or stream entry"));
  all.push_back(number("capacity", &Point::capacity, 0, 1 << 24,
                       "messages (Redis: elements) a queue holds before it pushes back; 0 = the window"));
  all.push_back({"flops-per-byte", "flops_per_byte", "fma_chain: floating-point operations per payload byte",
                 [](Point& point, const std::string& text) {
                   point.flops_per_byte = parse_number("--flops-per-byte", text);
                   if (point.flops_per_byte < 0.5 || point.flops_per_byte > 65536) {
                     throw BadInput("--flops-per-byte", text, "0.5 to 65536");
                   }
                 },
                 [](const Point& point) { return Json(point.flops_per_byte); }});
  choice("arrivals", &Point::arrivals, {"closed", "constant", "poisson", "bursts", "trace"},
         "closed = each result lets the next message go; else messages are due by a schedule");
  all.push_back(number("rate", &Point::rate, 0, 1'000'000'000,
                       "messages a second that are due, of all producers together; 0 = closed load, or a trace's own"));
  all.push_back(
      number("burst-us", &Point::burst_us, 0, 3'600'000'000, "arrivals bursts: length of a burst", "burst_us"));
  all.push_back(
      number("pause-us", &Point::pause_us, 0, 3'600'000'000, "arrivals bursts: time between two", "pause_us"));
  all.push_back(text("payload-mix", "payload_mix", &Point::payload_mix,
                     "open load: sizes by share, 64:0.9,4Ki:0.1, or lognormal:MEDIAN:SIGMA up to the payload",
                     [](const std::string& value) { parse_payload_mix(value, kMostPayload); }));
  all.push_back(text("priority-mix", "priority_mix", &Point::priority_mix,
                     "open load: priorities by share, 0:0.1,1:0.9; their latencies are told apart",
                     [](const std::string& value) { parse_priority_mix(value); }));
  all.push_back(text("trace-file", "trace_file", &Point::trace,
                     "arrivals trace: CSV or JSONL of time (s), and payload, priority, workload if wanted",
                     [](const std::string& value) { read_trace(value); }));
  return all;
}

/// Two cores for a worker and for all else, two for each producer and its collector.
unsigned producers_that_fit() {
  constexpr unsigned kMost = 8;
  const unsigned cores = available_cores();
  return cores < 4 ? 1 : std::min(kMost, (cores - 2) / 2);
}

/// Puts 0 or "none" where an axis does not apply.
void normalise(Point& point, const QueueEntry& queue) {
  if (!queue.uses_transfer) {
    point.transfer = kNoTransfer;
    point.workers = 0;
  }
  if (point.transfer == kNoTransfer) point.streams = 0;
  if (point.transfer == "pageable") point.streams = 1;
  if (!queue.uses_redis) point.pack = 0;
  if (!queue.uses_lanes) {
    point.lanes = point.pollers = point.mirrors = 0;
    point.granularity = point.notify = point.slots = point.results = point.ring_idle = kNoTransfer;
    point.slot_bytes = 0;
  }
  if (point.workload != "fma_chain") point.flops_per_byte = 0;
  if (point.device == "cpu" || !queue.works) point.block = 0;
  if (point.producers == 0) point.producers = producers_that_fit();
  point.batch = std::min(point.batch, point.window);
  if (!is_open(point)) {
    point.rate = 0;
    point.payload_mix = point.priority_mix = kNoMix;
  }
  if (point.arrivals != "bursts") point.burst_us = point.pause_us = 0;
  if (point.arrivals != "trace") point.trace = kNoMix;
}

std::string why_impossible(Point& point, Device& device, const QueueEntry& queue) {
  const auto workload = make_workload(point);
  if (auto reason = refuse_load(point, *workload); !reason.empty()) return reason;
  if (auto reason = workload->refuse(point.payload); !reason.empty()) return reason;
  if (queue.uses_transfer && point.transfer == kNoTransfer) return point.queue + " needs a transfer";
  if (point.pack > point.batch) {
    return fmt::format("pack {} needs a batch and a window of at least as many messages", point.pack);
  }
  if (queue.fit) {
    if (auto reason = queue.fit(point, device, *workload); !reason.empty()) return reason;
  }
  // What rings hold at most, and what workers' transfers stage.
  const std::size_t held =
      std::max(point.producers * std::max(point.window, point.capacity), point.lanes * point.batch);
  const std::size_t slots = 2 * held + std::size_t{point.workers} * (2 * point.streams + 1) * point.batch;
  const std::size_t bytes = slots * (stride_of(std::max(point.payload, point.slot_bytes)) +
                                     stride_of(std::max(workload->result_bytes(point.payload), point.slot_bytes)));
  if (bytes > kMostSlotMemory) {
    return fmt::format("window and payload take {}B of slots; {}B is the most", format_count(bytes),
                       format_count(kMostSlotMemory));
  }
  return "";
}

}  // namespace

const std::vector<Axis>& axes() {
  static const std::vector<Axis> all = make_axes();
  return all;
}

const Axis& axis(const std::string& name) {
  std::string names;
  for (const Axis& candidate : axes()) {
    if (candidate.name == name) return candidate;
    names += (names.empty() ? "" : ", ") + candidate.name;
  }
  throw BadInput("--axis", name, "one of " + names);
}

Json params_of(const Point& point) {
  Json params = Json::object();
  for (const Axis& a : axes()) params[a.row_key] = a.get(point);
  return params;
}

Resolution resolve(Point point, Device& device) {
  point.device = std::string(device.kind());
  const auto& queue = Queues::instance().get("--queue", point.queue);
  normalise(point, queue);
  std::string impossible = why_impossible(point, device, queue);
  return {point, std::move(impossible)};
}

std::unique_ptr<Workload> make_workload(const Point& point) {
  WorkloadOptions options;
  if (point.flops_per_byte > 0) options.flops_per_byte = point.flops_per_byte;
  return Workloads::instance().get("--workload", point.workload).make(options);
}

std::string row_id(const Json& params, unsigned repetition) {
  return fmt::format("{:016x}", hash64(params.dump() + "#" + std::to_string(repetition)));
}

}  // namespace feedrate
