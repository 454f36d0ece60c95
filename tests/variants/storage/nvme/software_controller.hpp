#pragma once
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include "variants/storage/nvme/port.hpp"
#include "variants/storage/nvme/prp.hpp"
#include "variants/storage/nvme/rings.hpp"

namespace feedrate::test {

/// What a software controller does wrong. Commands are counted from 1, I/O commands and admin commands separately.
struct Faults {
  std::uint64_t lose_admin = 0, lose_io = 0;  ///< this command is never completed
  std::uint64_t fail_io = 0;                  ///< this command ends with `status`
  storage::nvme::Status status{storage::nvme::kUnrecoveredReadError};
  std::uint64_t wrong_id = 0;       ///< the completion of this I/O command has an identifier that is not in flight
  bool never_ready = false;         ///< CSTS.RDY is never set
  bool fatal_when_enabled = false;  ///< CSTS.CFS is set instead of CSTS.RDY
  std::uint64_t fatal_after = 0;    ///< number of I/O commands after which CSTS.CFS is set
  bool never_shuts_down = false;
  unsigned block_log = 9;
};

/// An NVMe controller in software, with one namespace in memory, written against the specification and not against the
/// driver. Bus addresses are addresses of this process; access to memory that is not mapped is counted. I/O commands
/// are held back and completed in random order. step() does a bounded amount of work; run() does so in a thread.
class SoftwareController final : public storage::nvme::Port {
 public:
  static constexpr std::uint64_t kBlocks = 4096;
  static constexpr unsigned kTransferLog = 3;  // 32 KiB
  static constexpr std::uint32_t kEntries = 16;

  explicit SoftwareController(Faults faults = {}, std::uint64_t seed = 1);
  ~SoftwareController() override;

  const std::string& name() const override { return name_; }
  std::span<std::byte> registers() override { return std::as_writable_bytes(std::span(registers_)); }
  void set_bus_master(bool on) override { bus_master_ = on; }
  std::uint64_t map(std::byte* data, std::size_t bytes) override;
  void unmap(std::uint64_t bus, std::size_t bytes) noexcept override;

  void step();
  void run();
  void stop();
  bool bus_master() const { return bus_master_; }
  /// Accesses to memory that was not mapped, or while the device was not a bus master.
  unsigned bad_accesses() const { return bad_accesses_; }
  std::size_t mapped() const;
  unsigned shutdowns() const { return shutdowns_; }
  unsigned live_queues() const { return live_queues_; }
  std::vector<std::byte>& contents() { return contents_; }
  std::uint32_t read(storage::nvme::Register at) { return load(static_cast<std::uint32_t>(at)); }

 private:
  struct Submissions {
    std::uint64_t bus = 0;
    std::uint32_t size = 0, head = 0;
    std::uint16_t completions = 0;
  };
  struct Completions {
    std::uint64_t bus = 0;
    std::uint32_t size = 0, tail = 0;
    bool phase = true;
  };
  struct Pending {
    std::uint16_t queue = 0;
    storage::nvme::Command command;
  };
  std::uint32_t load(std::uint32_t at);
  void store(std::uint32_t at, std::uint32_t value);
  std::byte* memory(std::uint64_t bus, std::size_t bytes);
  bool fetch(std::uint16_t queue);
  bool complete_one();
  void admin(const storage::nvme::Command&);
  void identify(const storage::nvme::Command&);
  storage::nvme::Status io(const storage::nvme::Command&);
  bool each_part(const storage::nvme::Command&, std::size_t bytes, bool to_host, std::byte* data);
  void post(std::uint16_t queue, std::uint16_t id, storage::nvme::Status, std::uint32_t result = 0);
  void follow_configuration();

  std::string name_ = "software";
  Faults faults_;
  std::mt19937_64 random_;
  std::vector<std::uint64_t> registers_;
  std::vector<std::byte> contents_;
  mutable std::mutex mutex_;  // of mapped_
  std::map<std::uint64_t, std::size_t> mapped_;
  std::atomic<bool> bus_master_{false};
  std::atomic<unsigned> bad_accesses_{0}, shutdowns_{0}, live_queues_{0};
  std::map<std::uint16_t, Submissions> submissions_;
  std::map<std::uint16_t, Completions> completions_;
  std::vector<Pending> pending_;
  std::uint64_t admins_ = 0, ios_ = 0;
  bool shut_down_ = false;
  std::jthread thread_;
};

}  // namespace feedrate::test
