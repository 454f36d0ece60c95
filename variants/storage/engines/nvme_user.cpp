#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "common/clock.hpp"
#include "common/error.hpp"
#include "kernels/storage/content.hpp"
#include "libraries/storage/copies.hpp"
#include "libraries/storage/files.hpp"
#include "libraries/storage/slots.hpp"
#include "variants/storage/engine.hpp"
#include "variants/storage/nvme/shared_controller.hpp"
#include "variants/storage/nvme/status.hpp"
#include "variants/storage/nvme/transfers.hpp"
#include "variants/storage/nvme/vfio.hpp"

namespace feedrate::storage {
namespace {

constexpr std::uint64_t kCommandTimeout = 30'000'000'000;  // ns
constexpr std::uint64_t kCheckInterval = 10'000'000;       // ns between two checks of timeouts and of the controller
constexpr std::size_t kLargestCommand = std::size_t{2} << 20;

struct NvmeUserOptions {
  unsigned name_space = 1, queue_entries = 1024, streams = 2;
};
const Axes<NvmeUserOptions>& own_axes_of_nvme_user() {
  static const auto kAxes =
      Axes<NvmeUserOptions>()
          .number("namespace", &NvmeUserOptions::name_space, {1, 1024}, "namespace of the NVMe controller")
          .number("queue-entries", &NvmeUserOptions::queue_entries, {2, 65536},
                  "entries of each submission and completion queue; at most what the controller supports")
          .number("streams", &NvmeUserOptions::streams, {1, 32}, kStreamsHelp);
  return kAxes;
}

/// A part of a request that is one command.
struct Part {
  std::size_t slot = 0;
  std::size_t offset = 0, bytes = 0;  // within the request
};

/// A namespace with the queue pair of one engine. Parts that do not fit into the queue wait.
class Drive {
 public:
  Drive(const File& file, const NvmeUserOptions& options, Staging& staging)
      : controller_(nvme::open_controller(file.path)),
        space_(controller_->name_space(options.name_space)),
        entries_(std::min(options.queue_entries, controller_->max_entries())),
        staging_(controller_->port(), staging.all()) {
    reopen();
  }
  /// Deletes the queue pair and creates a new one.
  void reopen() {
    transfers_.reset();
    transfers_.emplace(*controller_, space_, entries_, kLargestCommand);
  }

  nvme::Controller& controller() { return *controller_; }
  nvme::Transfers& transfers() { return *transfers_; }
  std::uint64_t bytes() const { return space_.bytes(); }
  std::uint32_t block_bytes() const { return space_.block_bytes; }
  void add(const Part& part) { waiting_.push_back(part); }
  /// Submits waiting parts as far as the queue has room. `place(part)`: its byte in the namespace and in the staging
  /// memory.
  template <class Place>
  void send(Operation operation, Place&& place) {
    if (!waiting_.empty()) {
      const std::uint64_t now = now_ns();
      while (!waiting_.empty()) {
        const auto [offset, at] = place(waiting_.front());
        const auto blocks = static_cast<std::uint32_t>(waiting_.front().bytes / block_bytes());
        const auto opcode = operation == Operation::read ? nvme::IoOpcode::read : nvme::IoOpcode::write;
        if (!transfers_->submit(opcode, offset / block_bytes(), blocks, staging_.bus() + at, waiting_.front().slot,
                                now)) {
          break;
        }
        waiting_.pop_front();
      }
    }
    transfers_->queue().flush();
  }
  void check() {
    controller_->check_health();
    transfers_->queue().check_timeouts(now_ns(), kCommandTimeout);
  }

 private:
  std::shared_ptr<nvme::Controller> controller_;
  nvme::NamespaceInfo space_;
  std::uint32_t entries_;
  nvme::DmaMapping staging_;
  std::optional<nvme::Transfers> transfers_;  // deleted before the mapping
  std::deque<Part> waiting_;
};

/// Reads and writes by the NVMe driver of this process: no system call per request. Completed reads become one group
/// of copies per poll.
class NvmeUser final : public Engine {
 public:
  explicit NvmeUser(const PointConfig& config)
      : operation_(config.operation),
        staging_(config.device, config.depth, config.block),
        slots_(config.depth),
        left_(config.depth),
        errors_(config.depth) {
    const NvmeUserOptions options = own_axes_of_nvme_user().of(config.own);
    for (const File& file : config.files) drives_.push_back(std::make_unique<Drive>(file, options, staging_));
    copies_.emplace(config.device, options.streams, direction_of(config.operation));
  }

  bool submit(const Request& request) override {
    if (slots_.full()) return false;
    const Drive& drive = *drives_.at(request.file);
    const std::size_t slot = slots_.take(request);
    errors_[slot] = 0;
    const std::uint64_t end = std::min(drive.bytes(), request.offset + request.bytes);
    const std::size_t bytes = end <= request.offset ? 0 : end - request.offset;
    if (request.offset % drive.block_bytes() != 0 || bytes % drive.block_bytes() != 0) {
      slots_.end(slot, EINVAL);
    } else if (bytes == 0) {
      slots_.end(slot);
    } else if (slots_.bytes(slot) = bytes; operation_ == Operation::read) {
      add_parts(slot);
    } else {
      copies_->add(request, staging_.slot(slot), bytes, slot);
    }
    return true;
  }
  void flush() override {
    for (const auto& drive : drives_) {
      drive->send(operation_, [this](const Part& part) {
        const auto at = static_cast<std::size_t>(staging_.slot(part.slot) - staging_.all().data());
        return std::pair(slots_.at(part.slot).offset + part.offset, at + part.offset);
      });
    }
  }
  std::size_t poll(std::span<Completion> ended) override {
    flush();
    collect();
    copies_->poll([&](std::size_t slot) {
      if (operation_ == Operation::read) {
        slots_.end(slot);
      } else {
        add_parts(slot);
      }
    });
    flush();
    return slots_.poll(ended);
  }
  /// A drive has no files to open: its queue pair is created again.
  bool reopen() override {
    for (const auto& drive : drives_) drive->reopen();
    return true;
  }
  std::map<std::string, std::string> path() const override {
    std::map<std::string, std::string> path{{"mode", "user-space NVMe driver, pinned memory"}};
    if (drives_.empty()) return path;
    path["model"] = drives_[0]->controller().info().model;
    path["firmware"] = drives_[0]->controller().info().firmware;
    path["command_bytes"] = std::to_string(drives_[0]->transfers().max_bytes());
    path["queue_entries"] = std::to_string(drives_[0]->transfers().queue().depth() + 1);
    return path;
  }

 private:
  void add_parts(std::size_t slot) {
    Drive& drive = *drives_[slots_.at(slot).file];
    const std::size_t bytes = slots_.bytes(slot), step = drive.transfers().max_bytes();
    for (std::size_t at = 0; at < bytes; at += step) {
      // A completion without data is found also if the slot held the same block before.
      if (operation_ == Operation::read) clear_content(staging_.slot(slot) + at, sizeof(std::uint64_t));
      drive.add({slot, at, std::min(step, bytes - at)});
      ++left_[slot];
    }
  }
  /// Handles the controllers' completions.
  void collect() {
    for (const auto& drive : drives_) {
      drive->transfers().queue().poll([&](const nvme::Ended& end) { handle(end.tag, end.status); });
    }
    if (slots_.in_flight() == copies_->running()) return;
    if (const std::uint64_t now = now_ns(); now >= next_check_) {
      for (const auto& drive : drives_) drive->check();
      next_check_ = now + kCheckInterval;
    }
  }
  void handle(std::size_t slot, nvme::Status status) {
    if (errors_[slot] == 0) errors_[slot] = nvme::error_of(status);
    if (--left_[slot] != 0) return;
    if (errors_[slot] != 0) slots_.bytes(slot) = 0;
    if (operation_ == Operation::write || errors_[slot] != 0) return slots_.end(slot, errors_[slot]);
    copies_->add(slots_.at(slot), staging_.slot(slot), slots_.bytes(slot), slot);
  }

  Operation operation_;
  Staging staging_;
  Slots slots_;
  std::vector<std::size_t> left_;  // by slot: parts that have not ended
  std::vector<int> errors_;        // by slot: the first error
  std::uint64_t next_check_ = 0;
  std::vector<std::unique_ptr<Drive>> drives_;
  std::optional<Copies> copies_;  // destroyed first: it waits for the copies
};

const EngineRegistration registered(
    "nvme_user", {.description = "this program's own NVMe driver over VFIO, on a controller that is bound to vfio-pci",
                  .axes = own_axes_of_nvme_user().list(),
                  .unavailable = nvme::why_no_vfio,
                  .why_unsupported = [](const EnginePoint& point) -> std::string {
                    return point.direct ? "" : "engine nvme_user bypasses the page cache; use --direct yes";
                  },
                  .own_storage = true,
                  .make = make_engine<NvmeUser>});

}  // namespace
}  // namespace feedrate::storage
