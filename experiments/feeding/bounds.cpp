#include "experiments/feeding/bounds.hpp"

#include <optional>

#include "variants/queue.hpp"

namespace feedrate {
namespace {

/// A floor's value, and its name for the row.
struct Limit {
  std::string floor;
  double value;
};

std::optional<double> floor_value(const Json& floors, const std::string& name) {
  const auto found = floors.find(name);
  return found == floors.end() ? std::nullopt : std::optional(found->get<double>());
}

void tighten(std::optional<Limit>& limit, const std::string& name, std::optional<double> messages_per_second) {
  if (!messages_per_second || (limit && limit->value <= *messages_per_second)) return;
  limit = Limit{name, *messages_per_second};
}

/// Messages a second that `bytes_per_second` allows when the larger way has `bytes` a message.
std::optional<double> rate(std::optional<double> bytes_per_second, double bytes) {
  return bytes_per_second ? std::optional(*bytes_per_second / bytes) : std::nullopt;
}

bool chose(const Choices& choices, const std::string& axis, const std::string& value) {
  const auto found = choices.find(axis);
  return found != choices.end() && found->second == value;
}

std::optional<Limit> latency_limit(const Point& point, const Json& floors) {
  const auto get = [&](const char* name) { return floor_value(floors, name); };
  const auto& queue = Queues::instance().get("--queue", point.queue);
  if (!queue.works) return std::nullopt;
  std::string name;
  if (point.device == "cpu") {
    name = "thread_round_trip_ns";
  } else if (point.transfer == kNoTransfer) {
    // One poller watches the word, several the message: whichever is faster is the least.
    const auto word = get("word_round_trip_ns"), message = get("lone_message_ns");
    name = message && (!word || *message < *word) ? "lone_message_ns" : "word_round_trip_ns";
  } else {
    name = point.transfer == "mapped" ? "mapped_launch_sync_ns" : "copy_launch_copy_ns";
  }
  const auto device = get(name.c_str());
  if (!device) return std::nullopt;
  if (!queue.uses_redis) return Limit{name, *device};
  const auto trip = get("redis_round_trip_ns");
  if (!trip) return std::nullopt;
  // A task and a result each pass the server: half a round trip in, half a round trip out.
  return Limit{"2*redis_round_trip_ns+" + name, 2 * *trip + *device};
}

std::optional<Limit> throughput_limit(const Point& point, const Json& floors, const Choices& choices, double in,
                                      double out) {
  std::optional<Limit> limit;
  const auto get = [&](const char* name) { return floor_value(floors, name); };
  const auto& queue = Queues::instance().get("--queue", point.queue);
  if (!queue.works) return limit;
  if (point.device == "cpu") {
    // A copy reads and writes; each message is at least copied once each way or worked on in place.
    tighten(limit, "host_copy_bytes_per_second", rate(get("host_copy_bytes_per_second"), std::max(in, out)));
  } else if (point.transfer == "mapped" || (point.transfer == kNoTransfer && !chose(choices, "slots", "vram"))) {
    tighten(limit, "sm_echo_bytes_per_second", rate(get("sm_echo_bytes_per_second"), std::max(in, out)));
  } else {
    tighten(limit, "copy_engine_both_bytes_per_second",
            rate(get("copy_engine_both_bytes_per_second"), std::max(in, out)));
  }
  // One worker thread queues launches no faster than this; synchronous copies take their whole way each time.
  const auto at_once = static_cast<double>(point.workers * point.batch);
  if (point.device == "cuda" && point.transfer == "pageable") {
    if (const auto way = get("copy_launch_copy_ns")) tighten(limit, "batch/copy_launch_copy_ns", at_once / *way * 1e9);
  } else if (point.device == "cuda" && queue.uses_transfer) {
    if (const auto launches = get("launch_per_second")) tighten(limit, "batch*launch_per_second", at_once * *launches);
  }
  // Little's law: what is in flight, over the shortest time a message can take.
  if (const auto shortest = latency_limit(point, floors)) {
    tighten(limit, "window/" + shortest->floor,
            static_cast<double>(point.producers * point.window) / shortest->value * 1e9);
  }
  if (queue.uses_redis) {
    // Every message passes the server twice, as a task and as a result, and is added and taken each time.
    const bool list = point.queue == "redis_list";
    const char* add_name = list ? "redis_list_push_per_second" : "redis_stream_add_per_second";
    const char* take_name = list ? "redis_list_pop_per_second" : "redis_stream_read_per_second";
    if (const auto add = get(add_name), take = get(take_name); add && take) {
      tighten(limit, std::string(add_name) + "+" + take_name, static_cast<double>(point.pack) / (2 / *add + 2 / *take));
    }
    tighten(limit, "redis_bytes_per_second", rate(get("redis_bytes_per_second"), in + out));
  }
  return limit;
}

/// What crosses the bus for a message or result of this payload.
double moved_bytes(std::size_t payload, const Choices& choices) {
  const std::size_t bytes = sizeof(Header) + payload;
  if (chose(choices, "notify", "flags")) return static_cast<double>(units_of(bytes) * sizeof(Unit));
  return static_cast<double>(stride_of(payload));
}

}  // namespace

Json bounds_of(const Point& point, const Json& floors, const Choices& choices, double messages_per_second,
               double p50_ns) {
  Json bounds = Json::object();
  const double in = moved_bytes(point.payload, choices);
  const double out = moved_bytes(make_workload(point)->result_bytes(point.payload), choices);
  if (const auto limit = throughput_limit(point, floors, choices, in, out)) {
    bounds["throughput"] = {{"floor", limit->floor},
                            {"value_messages_per_second", limit->value},
                            {"ratio", messages_per_second / limit->value}};
  }
  if (const auto limit = latency_limit(point, floors)) {
    bounds["latency"] = {{"floor", limit->floor}, {"value_ns", limit->value}, {"ratio", p50_ns / limit->value}};
  }
  return bounds;
}

}  // namespace feedrate
