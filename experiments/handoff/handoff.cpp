#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <optional>
#include <set>

#include "common/clock.hpp"
#include "common/error.hpp"
#include "common/nvtx_range.hpp"
#include "common/own_executable.hpp"
#include "experiments/handoff/rounds.hpp"
#include "experiments/harness/machine/machine_monitor.hpp"
#include "experiments/harness/measure/session.hpp"

/// The `handoff` experiment: passing a tensor to another process that computes on it (experiments/handoff/README.md).
namespace feedrate::handoff {
namespace {

const Axes<Options>& own_axes() {
  static const auto kAxes =
      Axes<Options>()
          .word(
              "way", &Options::way, [] { return Ways::instance().list(); }, "how the tensor is handed over")
          .word("device", &Options::device, {"auto", "cpu", "cuda"},
                "device of exporter and readers; auto = cuda if available")
          .number("bytes", &Options::bytes, {128, double(std::size_t{8} << 30), 8}, "bytes per tensor")
          .number("tensors", &Options::tensors, {1, tensors::kPacketDescriptors}, "tensors per hand-off")
          .number("readers", &Options::readers, {1, 16}, "processes that each read all tensors")
          .word("use", &Options::use, {"cached", "first"},
                "cached: tensors that the readers already know, with new content; first: new tensors each time")
          .word("to", &Options::to, {"same", "other"}, "GPU of the readers: the exporter's or another one")
          .word("reach", &Options::reach, {"map", "copy"},
                "on another GPU: the kernel reads the exporter's memory, or a local copy");
  return kAxes;
}

class Handoff final : public Experiment {
 public:
  explicit Handoff(Session& session) : session_(session) {}

  Resolution resolve(const Values& values) override {
    Options options = own_axes().of(values);
    options.device = session_.device().kind();
    Resolution made;
    if (options.to == "same" || entry_of(options).copies.moves_over_bus != 0) {
      options.reach = "map";
      made.unused["reach"] = "with --to other, and a way that moves no bytes";
    }
    own_axes().put(options, made.values);
    made.impossible = why_impossible(options);
    return made;
  }

  void connect(std::span<const Resolution> points) override {
    std::set<std::string> services;
    for (const Resolution& point : points) {
      if (point.impossible.empty()) services.insert(entry_of(own_axes().of(point.values)).service);
    }
    for (const std::string& service : services) {
      if (!service.empty()) session_.services().connect(service);
    }
  }

  Measurement measure(const Resolution& cell, const Repetition&) override {
    const Options options = own_axes().of(cell.values);
    const Entry& entry = entry_of(options);
    Measurement measured;
    measured.host_threads = 1 + options.readers;
    Setting setting = setting_of(options);
    if (!entry.service.empty()) {
      const Service& service = session_.services().get(entry.service, needs_of(options));
      setting.address = service.address();
      setting.shared = service.is_external();
      setting.prefix = service.own_prefix() + ":handoff";
    }
    session_.device().use_in_this_thread();
    MachineMonitor monitor(session_.gpu());
    Seen seen;
    try {
      seen = run_for(session_.settings().seconds, options, setting);
    } catch (...) {
      readers_.clear();  // the readers may have unread replies or have exited
      throw;
    }
    measured.machine = monitor.stop();
    measured.details["verified"] = {{"tensors", seen.verified}, {"wrong", seen.wrong}};
    if (seen.wrong != 0) {
      measured.judge(
          Status::failed, Cause::wrong_results,
          fmt::format("{} of {} tensors were read incorrectly; {}", seen.wrong, seen.verified, seen.first_wrong));
      return measured;
    }
    if (seen.handoff.samples() == 0) {
      measured.judge(Status::invalid, Cause::no_results, "no hand-off ended within the timed phase");
      return measured;
    }
    add_figures(options, entry.copies, seen, measured);
    return measured;
  }

 private:
  std::string why_impossible(const Options& options) {
    const Entry& entry = entry_of(options);
    if (options.to == "other" && !other()) return "this machine has no second GPU";
    const Setting setting = setting_of(options);
    if (entry.why_unsupported) {
      if (auto reason = entry.why_unsupported(setting); !reason.empty()) return reason;
    }
    constexpr std::size_t kMax = std::size_t{16} << 30;
    if (options.bytes * options.tensors > kMax) {
      return fmt::format("{} tensors of {} bytes are more than the {} GiB allowed", options.tensors, options.bytes,
                         kMax >> 30);
    }
    return "";
  }
  std::optional<unsigned> other() {
    if (!other_) other_ = other_gpu(session_.device());
    return *other_;
  }
  Setting setting_of(const Options& options) {
    Setting setting;
    setting.device = options.device;
    setting.bytes = options.bytes;
    setting.exporter_gpu = session_.gpu_index();
    setting.importer_gpu = options.to == "other" ? other().value() : setting.exporter_gpu;
    setting.copies_to_peer = options.reach == "copy";
    return setting;
  }

  ServiceNeeds needs_of(const Options& options) const {
    return {options.device, session_.gpu_index(), options.bytes * options.tensors * 2 + (std::size_t{64} << 20)};
  }

  Seen run_for(double seconds, const Options& options, const Setting& setting) {
    Seen seen;
    // A surplus reader would spin next to the others.
    if (readers_.size() > options.readers) readers_.resize(options.readers);
    while (readers_.size() < options.readers) readers_.push_back(std::make_unique<ReaderProcess>());
    Rounds rounds(options, setting, session_.device(), readers_);
    const bool first = options.use == "first";
    {
      const NvtxRange range("warm-up");
      rounds.hand_over(nullptr);
      if (first) rounds.let_go(nullptr);
    }
    const NvtxRange range("timed");
    const Captured captured(session_);
    const std::uint64_t end = now_ns() + static_cast<std::uint64_t>(seconds * 1e9);
    // At least one round, however long it takes.
    for (unsigned round = 0; seen.wrong == 0 && !interrupted() && (round == 0 || now_ns() < end); ++round) {
      rounds.hand_over(&seen);
      if (first) rounds.let_go(&seen);
    }
    if (!first) rounds.let_go(nullptr);
    return seen;
  }

  void add_figures(const Options& options, const Copies& copies, const Seen& seen, Measurement& measured) {
    const double handoff_ns = static_cast<double>(seen.handoff.quantile(0.5));
    const auto bytes = static_cast<double>(options.bytes) * options.tensors;
    measured.histograms["handoff_ns"] = {seen.handoff, 1};
    measured.histograms["to_start_ns"] = {seen.start, 1};
    if (seen.create.samples() != 0) measured.histograms["create_ns"] = {seen.create, 1};
    if (seen.destroy.samples() != 0) measured.histograms["delete_ns"] = {seen.destroy, 1};
    measured.numbers["bytes_per_second"] = bytes * options.readers / handoff_ns * 1e9;
    const unsigned of_reader = copies.device_of_reader + (options.reach == "copy" ? 1 : 0);
    measured.cost["device_bytes"] = bytes * (1 + of_reader * options.readers);
    measured.cost["host_bytes"] = bytes * (copies.host + copies.host_of_reader * options.readers);
    // Lower bound: one kernel of the reader, after the tensor has crossed the bus and back.
    Expression least = floor_of("launch_sync_ns");
    if (copies.moves_over_bus != 0) {
      least = least + given("bytes", bytes) / ceiling_of("copy_engine_d2h_bytes_per_second") +
              given("bytes", bytes) / ceiling_of("copy_engine_h2d_bytes_per_second");
    }
    measured.bounds_of_figures.emplace_back("handoff_ns", least);
  }

  Session& session_;
  std::optional<std::optional<unsigned>> other_;  // cached, since the search creates a context
  Rounds::Readers readers_;                       // kept from cell to cell
};

/// Runs in a reader's process.
int read_for_parent() {
  int type = 0;
  socklen_t size = sizeof type;
  if (getsockopt(kOwnSocket, SOL_SOCKET, SO_TYPE, &type, &size) != 0 || type != SOCK_SEQPACKET) {
    throw BadInput("subcommand", "helper", "the subcommands in --help; this one is internal to the handoff experiment");
  }
  read_tensors(kOwnSocket);
  return 0;
}

Json members() {
  Json ways = Json::array();
  Setting setting;
  setting.device = describe_device("auto").kind;
  setting.bytes = 1 << 20;
  for (const auto& [name, entry] : Ways::instance().entries()) {
    ways.push_back({{"name", name},
                    {"description", entry.description},
                    {"unavailable", entry.why_unsupported ? entry.why_unsupported(setting) : ""},
                    {"axes", Json::array()},
                    {"moves_over_bus", entry.copies.moves_over_bus}});
  }
  return {{"ways", ways}};
}

const ExperimentRegistration registered(
    "handoff",
    {.description = "how a tensor gets to another process that computes on it",
     .axes = [] { return AxisTable(own_axes().list()); },
     .figures =
         {{"handoff_ns", "ns", Better::lower, true, true,
           "from when the exporter's tensor is written until all readers' kernels have read it completely"},
          {"to_start_ns", "ns", Better::lower, true, false,
           "until the first kernel of every reader could start: launched, with all earlier work in its stream done"},
          {"bytes_per_second", "B/s", Better::higher, false, true,
           "bytes read by all readers, divided by the median hand-off"},
          {"create_ns", "ns", Better::lower, true, false, "time to create a tensor in the exporter's device memory"},
          {"delete_ns", "ns", Better::lower, true, false, "time to delete a tensor that no process uses any longer"}},
     .variant = {"way"},
     .shown = {"bytes", "use"},
     .rate = "bytes_per_second",
     .time = "handoff_ns",
     .make = [](Session& session) { return std::make_unique<Handoff>(session); },
     .threads = [](const Values& values) { return 1 + own_axes().of(values).readers; },
     .listing = {members},
     .helper = read_for_parent,
     .unused_options = {"external-worker", "messages", "no-stages", "pin", "trace", "warmup"}});

}  // namespace
}  // namespace feedrate::handoff
