#include "experiments/feeding/axes.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/threads/threads.hpp"
#include "experiments/feeding/stamped.hpp"
#include "experiments/harness/load/mix.hpp"
#include "experiments/harness/load/schedule.hpp"
#include "variants/feeding/queue.hpp"
#include "variants/feeding/transfer.hpp"

namespace feedrate {
namespace {

std::vector<std::string> transfers_and_none() {
  auto names = Transfers::instance().list();
  names.emplace_back(kNoTransfer);
  return names;
}

Axes<Point> make_axes() {
  Axes<Point> axes;
  axes.word(
          "queue", &Point::queue, [] { return Queues::instance().list(); },
          "carries messages to the device and results back")
      .word("transfer", &Point::transfer, transfers_and_none,
            "moves batches to the device and back, for queues that do not do so themselves")
      .word(
          "workload", &Point::workload, [] { return Workloads::instance().list(); },
          "what the device computes for a message")
      .word("device", &Point::device, {"auto", "cpu", "cuda"},
            "device that runs the workload; auto = cuda if there is a GPU")
      .number("payload", &Point::payload, {0, kMaxPayload, 1, "payload_bytes"}, "payload bytes per message")
      .number("batch", &Point::batch, {1, 1 << 20}, "maximum number of messages passed on as one batch")
      .number("batch-timeout", &Point::batch_timeout_us, {0, 10'000'000, 1, "batch_timeout_us"},
              "microseconds for which a producer holds back a partial batch; 0 = sends it immediately")
      .number("window", &Point::window, {1, 1 << 24}, "messages in flight per producer; 1 = lone messages")
      .number("producers", &Point::producers, {0, 1024},
              "producing threads, each with a collecting thread; 0 = as many as this machine has cores for")
      .number("workers", &Point::workers, {1, 64}, "threads between a broker queue and the device")
      .number("block", &Point::block, {32, 1024, 32}, "GPU threads per block, a multiple of 32")
      .number("capacity", &Point::capacity, {0, 1 << 24},
              "messages (Redis: elements) that a queue holds before it pushes back; 0 = the window")
      .word("touch", &Point::touch, {"all", "stamp"},
            "bytes that the host writes and checks: all, or a header and a stamp (1 of 64 messages in full)")
      .all_of(load_axes())
      .text(
          "payload-mix", &Point::payload_mix, [](const std::string& value) { parse_payload_mix(value, kMaxPayload); },
          "open load: sizes by share, 64:0.9,4Ki:0.1, or lognormal:MEDIAN:SIGMA up to the payload")
      .text(
          "priority-mix", &Point::priority_mix, [](const std::string& value) { parse_priority_mix(value); },
          "open load: priorities by share, 0:0.1,1:0.9; latencies are reported for each priority");
  return axes;
}

/// Number of producers that fit the machine's cores: two cores are for a worker and everything else, one for each busy
/// thread of a server, and two for each producer and its collector.
unsigned producers_that_fit(const QueueEntry& queue) {
  constexpr unsigned kMax = 8;
  const unsigned served = queue.service.empty() ? 0 : Services::instance().get("service", queue.service).threads;
  const unsigned cores = available_cores(), others = 2 + served;
  return cores < others + 2 ? 1 : std::min(kMax, (cores - others) / 2);
}

/// Values on the axes of this point's members.
Values own_values(const Point& point, const QueueEntry& queue) {
  std::vector<Axis> axes = joined(queue.axes, Workloads::instance().get("--workload", point.workload).axes);
  if (point.transfer != kNoTransfer) {
    axes = joined(std::move(axes), Transfers::instance().get("--transfer", point.transfer).axes);
  }
  return values_on(axes, point.own);
}

void normalise(Resolved& made, const QueueEntry& queue) {
  Point& point = made.point;
  const auto without = [&](const std::string& name, auto field, auto none, std::string allowed) {
    made.unused.emplace(name, std::move(allowed));
    point.*field = none;
  };
  if (!queue.uses_transfer) {
    const std::string itself = fmt::format("none (queue {} moves messages itself)", point.queue);
    without("transfer", &Point::transfer, std::string(kNoTransfer), itself);
    without("workers", &Point::workers, 0u, itself);
  }
  if (point.device == "cpu" || !queue.works) without("block", &Point::block, 0u, "with --device cuda, and a GPU");
  if (point.producers == 0) point.producers = producers_that_fit(queue);
  point.batch = std::min(point.batch, point.window);
  if (!is_open(point)) {
    const char* const open = "with --arrivals other than closed";
    without("rate", &Point::rate, 0u, open);
    without("payload-mix", &Point::payload_mix, std::string(kNoMix), open);
    without("priority-mix", &Point::priority_mix, std::string(kNoMix), open);
  }
  if (point.arrivals != "bursts") {
    without("burst-us", &Point::burst_us, 0u, "with --arrivals bursts");
    without("pause-us", &Point::pause_us, 0u, "with --arrivals bursts");
  }
  if (point.arrivals != "trace") {
    without("trace-file", &Point::trace_file, std::string(kNoMix), "with --arrivals trace");
  }
  point.own = own_values(point, queue);
}

std::string why_unsupported_touch(const Point& point) {
  if (point.touch == "all") return "";
  if (point.payload < Stamped::kStampBytes) {
    return fmt::format("--payload: invalid value '{}': --touch stamp needs at least the stamp's {} bytes",
                       point.payload, Stamped::kStampBytes);
  }
  const bool sizes = point.payload_mix != kNoMix ||
                     (point.arrivals == "trace" && !read_trace(point.trace_file).schedule.payloads.empty());
  return sizes ? "touch stamp needs messages of one size: all messages are identical after the stamp" : "";
}

std::string why_impossible(Point& point, Device& device, const QueueEntry& queue) {
  const auto workload = make_workload(point);
  if (auto reason = why_unsupported_load(point, *workload); !reason.empty()) return reason;
  if (auto reason = workload->why_unsupported(point.payload); !reason.empty()) {
    return fmt::format("--payload: invalid value '{}': {}", point.payload, reason);
  }
  if (auto reason = why_unsupported_touch(point); !reason.empty()) return reason;
  if (queue.uses_transfer && point.transfer == kNoTransfer) return point.queue + " needs a transfer";
  if (queue.uses_transfer) {
    const auto& transfer = Transfers::instance().get("--transfer", point.transfer);
    if (auto reason = transfer.why_unsupported ? transfer.why_unsupported(device.info()) : ""; !reason.empty())
      return reason;
  }
  if (queue.why_unsupported) {
    if (auto reason = queue.why_unsupported(point, device, *workload); !reason.empty()) return reason;
  }
  std::size_t slots = 2 * std::size_t{point.producers} * std::max(point.window, point.capacity);
  if (queue.uses_transfer) {  // slots in which workers stage messages
    const auto& transfer = Transfers::instance().get("--transfer", point.transfer);
    slots += std::size_t{point.workers} * (transfer.depth(point) + 1) * point.batch;
  }
  return why_too_many_slots(slots, point.payload, workload->result_bytes(point.payload));
}

}  // namespace

const Axes<Point>& shared_axes() {
  static const Axes<Point> all = make_axes();
  return all;
}

AxisTable feeding_axes() {
  AxisTable table;
  table.add("", shared_axes().list());
  for (const auto& [name, entry] : Queues::instance().entries()) table.add(name, entry.axes);
  for (const auto& [name, entry] : Transfers::instance().entries()) table.add(name, entry.axes);
  for (const auto& [name, entry] : Workloads::instance().entries()) table.add(name, entry.axes);
  return table;
}

Point point_of(const Values& values) {
  Point point = shared_axes().of(values);
  point.own = values;
  for (const Axis& axis : shared_axes().list()) point.own.erase(axis.name);
  return point;
}

Values values_of(const Point& point) {
  Values values = point.own;
  shared_axes().put(point, values);
  return values;
}

std::string why_unsupported_load(Point& point, const Workload& workload) {
  if (auto reason = why_invalid_shape(point); !reason.empty() || !is_open(point)) return reason;
  const bool traced = point.arrivals == "trace";
  std::vector<std::size_t> sizes;
  if (traced) {
    const TraceFile trace = read_trace(point.trace_file);
    if (!trace.workload.empty() && trace.workload != point.workload) {
      return fmt::format("the trace is of workload {}, but the point has workload {}", trace.workload, point.workload);
    }
    sizes.assign(trace.schedule.payloads.begin(), trace.schedule.payloads.end());
    std::sort(sizes.begin(), sizes.end());
    sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  }
  if (sizes.empty() && point.payload_mix != kNoMix)
    sizes = parse_payload_mix(point.payload_mix, point.payload).values();
  for (const std::size_t size : sizes) {
    if (auto reason = workload.why_unsupported(size); !reason.empty()) {
      return fmt::format("{}: invalid payload '{}': {}", traced ? "--trace-file" : "--payload-mix", size, reason);
    }
    point.payload = std::max(point.payload, size);
  }
  return "";
}

Resolved resolve(Point point, Device& device) {
  Resolved made{std::move(point), "", {}};
  made.point.device = std::string(device.kind());
  const auto& queue = Queues::instance().get("--queue", made.point.queue);
  normalise(made, queue);
  made.impossible = why_impossible(made.point, device, queue);
  return made;
}

std::unique_ptr<Workload> make_workload(const Point& point) {
  return Workloads::instance().get("--workload", point.workload).make(point.own);
}

std::string variant_of(const Point& point) {
  return point.transfer == kNoTransfer ? point.queue : point.queue + " + " + point.transfer;
}

}  // namespace feedrate
