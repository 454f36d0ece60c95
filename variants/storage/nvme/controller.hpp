#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "common/error.hpp"
#include "variants/storage/nvme/identify.hpp"
#include "variants/storage/nvme/port.hpp"
#include "variants/storage/nvme/queue_pair.hpp"

namespace feedrate::storage::nvme {

struct ControllerSettings {
  /// Longest time in ns until an admin command ends. A reset may take as long as the controller states (CAP.TO).
  std::uint64_t command_timeout_ns = 10'000'000'000;
  std::uint16_t max_queue_pairs = 64;  ///< number of I/O queue pairs to request
};

/// Bus addresses of an I/O queue pair's memory, each a multiple of kPage.
struct QueueAddresses {
  std::uint64_t submissions = 0, completions = 0;
  std::uint32_t entries = 0;  ///< of each queue: 2 to Controller::max_entries()
};
/// An I/O queue pair that exists in the controller. Identifiers are reused after the pair is deleted, and a reset
/// deletes all pairs.
struct QueueId {
  std::uint16_t number = 0;
  std::uint64_t generation = 0;  ///< Controller::generation() at creation
};

/// An NVMe controller. The constructor resets, enables and identifies it; the destructor shuts it down in order
/// (section 7.6.2). All calls may come from several threads. Every wait has a timeout. Each call throws Failure that
/// names the device. If an admin command is lost or the controller reports a fatal status, the controller is disabled,
/// so that it accesses no memory, and only reset() can make it usable again.
class Controller {
 public:
  explicit Controller(std::unique_ptr<Port>, const ControllerSettings& = {});
  ~Controller();
  Controller(const Controller&) = delete;
  Controller& operator=(const Controller&) = delete;

  const std::string& name() const { return port_->name(); }
  Port& port() { return *port_; }
  const ControllerInfo& info() const { return info_; }
  /// Active namespaces in a supported format, by identifier. Throws Failure if `id` is not among them.
  const NamespaceInfo& name_space(std::uint32_t id) const;
  const std::vector<NamespaceInfo>& namespaces() const { return namespaces_; }
  /// Maximum number of entries per queue.
  std::uint32_t max_entries() const { return capabilities_.max_entries(); }
  /// Number of I/O queue pairs that can exist.
  std::uint16_t max_queue_pairs() const { return max_pairs_; }
  /// Increases with each reset.
  std::uint64_t generation() const;

  /// Creates an I/O queue pair on memory that the device can access; it must be zero. It may be a GPU's memory: the
  /// queue pair uses no interrupts.
  QueueId create_queues(const QueueAddresses&);
  /// Deletes an I/O queue pair, whose commands end or are aborted first. Then its memory can be freed. Does nothing if
  /// a reset has deleted the pair.
  void delete_queues(const QueueId&);
  /// Doorbells of a queue pair in the mapped registers. Throws Failure if the registers are too small to have them.
  std::uint32_t* submission_doorbell(const QueueId&);
  std::uint32_t* completion_doorbell(const QueueId&);

  /// Throws Failure if the controller reports a fatal status or is gone.
  void check_health();
  /// Resets and enables the controller (section 7.3.2). All I/O queue pairs are deleted; commands in flight do not end.
  void reset();
  /// Shuts the controller down: deletes I/O queue pairs, flushes its caches, disables it. Does nothing if it has been
  /// shut down before.
  void shut_down();

 private:
  std::uint32_t read(Register);
  std::uint64_t read_long(Register);
  void write(Register, std::uint32_t);
  void write_long(Register, std::uint64_t);
  std::uint32_t* doorbell(std::uint32_t offset);
  void enable();
  void disable();
  template <class Done>
  void wait_for(const char* what, std::uint64_t timeout_ns, bool fatal_ends, Done&& done);
  std::uint64_t ready_timeout_ns() const;
  std::uint32_t execute(const std::string& what, const Command&);
  void identify(Identify, std::uint32_t namespace_id, const std::string& what);
  void identify_all();
  void request_queues();
  void delete_locked(std::uint16_t number);
  IdentifyData identified() const { return IdentifyData(data_.data(), kIdentifyBytes); }
  Failure failure(const std::string& what) const;

  std::unique_ptr<Port> port_;
  ControllerSettings settings_;
  Capabilities capabilities_;
  DmaMemory submissions_, completions_, data_;  // of the admin queues and of Identify
  std::optional<QueuePair> admin_;
  ControllerInfo info_;
  std::vector<NamespaceInfo> namespaces_;
  std::uint16_t max_pairs_ = 0;
  mutable std::mutex mutex_;  // of everything below, and of the admin queues
  std::uint64_t generation_ = 0;
  std::vector<bool> used_;  // by queue number; 0 is the admin queue
  bool enabled_ = false;
};

/// An I/O queue pair in host memory. The controller must outlive it.
class IoQueues {
 public:
  /// `entries`: of each queue; at most entries − 1 commands are in flight. Throws Failure.
  IoQueues(Controller&, std::uint32_t entries);
  /// Deletes the queues in the controller. If that fails, the controller has been disabled.
  ~IoQueues();
  IoQueues(const IoQueues&) = delete;
  IoQueues& operator=(const IoQueues&) = delete;
  QueuePair& queue() { return queue_; }
  const QueueId& id() const { return id_; }

 private:
  Controller& controller_;
  DmaMemory submissions_, completions_;
  QueueId id_;
  QueuePair queue_;
};

}  // namespace feedrate::storage::nvme
