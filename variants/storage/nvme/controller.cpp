#include "variants/storage/nvme/controller.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <thread>

#include "common/clock.hpp"
#include "common/error.hpp"
#include "common/threads/threads.hpp"
#include "variants/storage/nvme/prp.hpp"
#include "variants/storage/nvme/status.hpp"

namespace feedrate::storage::nvme {
namespace {

constexpr std::uint32_t kAdminEntries = 32;
constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kShortestShutdown = 5 * kSecond;  // allowed time if RTD3E is less

Command admin_command(AdminOpcode opcode, std::uint32_t dword10, std::uint32_t dword11, std::uint64_t prp1 = 0) {
  Command command;
  command.opcode_and_id = opcode_and_id(static_cast<std::uint8_t>(opcode), 0);
  command.prp1 = prp1;
  command.dwords[0] = dword10;
  command.dwords[1] = dword11;
  return command;
}

}  // namespace

Controller::Controller(std::unique_ptr<Port> port, const ControllerSettings& settings)
    : port_(std::move(port)), settings_(settings) {
  if (port_->registers().size() < kDoorbells + kPage) throw failure("its registers are too small");
  if (read(Register::status) == 0xFFFF'FFFF) throw failure("it does not answer; check its slot and power");
  capabilities_ = {read_long(Register::capabilities)};
  if (capabilities_.min_page() > kPage) {
    throw failure(fmt::format("it needs pages of at least {} bytes", capabilities_.min_page()));
  }
  if (!capabilities_.nvm_command_set()) throw failure("it does not support the NVM command set");
  if (const std::uint32_t version = read(Register::version); version < 0x10100) {
    throw failure(fmt::format("its version is {}.{}; 1.1 is needed", version >> 16, version >> 8 & 0xFF));
  }
  submissions_ = DmaMemory(*port_, kAdminEntries * sizeof(Command));
  completions_ = DmaMemory(*port_, kAdminEntries * sizeof(CompletionEntry));
  data_ = DmaMemory(*port_, kIdentifyBytes);
  try {
    reset();
    const std::lock_guard lock(mutex_);
    identify_all();
  } catch (...) {
    try {
      const std::lock_guard lock(mutex_);
      disable();
    } catch (const Failure&) {  // the first failure is the one to report
    }
    throw;
  }
}

Controller::~Controller() {
  try {
    shut_down();
  } catch (const std::exception&) {  // the IOMMU ends the device's access when the memory is unmapped
  }
}

const NamespaceInfo& Controller::name_space(std::uint32_t id) const {
  const auto found = std::ranges::find(namespaces_, id, &NamespaceInfo::id);
  if (found == namespaces_.end()) throw failure(fmt::format("it has no active namespace {}", id));
  return *found;
}

std::uint64_t Controller::generation() const {
  const std::lock_guard lock(mutex_);
  return generation_;
}

Failure Controller::failure(const std::string& what) const { return Failure(fmt::format("{}: {}", name(), what)); }

// --- registers -------------------------------------------------------------------------------------------------------

std::uint32_t* Controller::doorbell(std::uint32_t offset) {
  if (offset + sizeof(std::uint32_t) > port_->registers().size()) {
    throw failure(fmt::format("its registers end before offset {:#x}", offset));
  }
  return reinterpret_cast<std::uint32_t*>(port_->registers().data() + offset);
}
std::uint32_t Controller::read(Register at) {
  return SystemMemory::load_acquire(*doorbell(static_cast<std::uint32_t>(at)));
}
/// Two halves, which section 3.1 allows for 64-bit registers.
std::uint64_t Controller::read_long(Register at) {
  const std::uint32_t low = read(at), high = read(Register{static_cast<std::uint32_t>(at) + 4});
  return low | std::uint64_t{high} << 32;
}
void Controller::write(Register at, std::uint32_t value) {
  SystemMemory::store_release(*doorbell(static_cast<std::uint32_t>(at)), value);
}
void Controller::write_long(Register at, std::uint64_t value) {
  write(at, static_cast<std::uint32_t>(value));
  write(Register{static_cast<std::uint32_t>(at) + 4}, static_cast<std::uint32_t>(value >> 32));
}

/// Waits until `done(status)`. `fatal_ends`: whether a fatal status ends the wait.
template <class Done>
void Controller::wait_for(const char* what, std::uint64_t timeout_ns, bool fatal_ends, Done&& done) {
  const std::uint64_t deadline = now_ns() + timeout_ns;
  while (true) {
    const bool late = now_ns() > deadline;  // before the last reading
    const ControllerStatus status{read(Register::status)};
    if (status.gone()) throw failure("it does not answer any more");
    if (done(status)) return;
    if (fatal_ends && status.fatal())
      throw failure(fmt::format("it reports a fatal status (CSTS.CFS) and has not {}", what));
    if (late) {
      throw failure(fmt::format("it has not {} within {:.3g} s", what, static_cast<double>(timeout_ns) / 1e9));
    }
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

std::uint64_t Controller::ready_timeout_ns() const {
  return std::max<std::uint64_t>(capabilities_.timeout_ms(), 500) * 1'000'000;
}

// --- reset and shutdown ----------------------------------------------------------------------------------------------

void Controller::check_health() {
  const ControllerStatus status{read(Register::status)};
  if (status.gone()) throw failure("it does not answer any more");
  if (status.fatal()) throw failure("it reports a fatal status (CSTS.CFS)");
}

/// Disables the controller: afterwards it accesses no memory, and no queue exists.
void Controller::disable() {
  enabled_ = false;
  ++generation_;
  used_.assign(used_.size(), false);
  const std::uint32_t configuration = read(Register::configuration);
  if ((configuration & kEnable) != 0) {
    // While a controller becomes ready, it must not be disabled (section 3.1.5, EN).
    if (!ControllerStatus{read(Register::status)}.fatal()) {
      try {
        wait_for("become ready", ready_timeout_ns(), true, [](ControllerStatus status) { return status.ready(); });
      } catch (const Failure&) {  // it is disabled nevertheless
      }
    }
    write(Register::configuration, configuration & ~(kEnable | kShutdownMask));
  }
  wait_for("stopped", ready_timeout_ns(), false, [](ControllerStatus status) { return !status.ready(); });
  port_->set_bus_master(false);
}

/// Enables a disabled controller, with empty admin queues (section 7.6.1).
void Controller::enable() {
  std::fill_n(submissions_.data(), submissions_.size(), std::byte{0});
  std::fill_n(completions_.data(), completions_.size(), std::byte{0});
  const std::uint32_t stride = capabilities_.doorbell_stride();
  const std::uint32_t entries = std::min(kAdminEntries, capabilities_.max_entries());
  admin_.emplace(
      name(), 0,
      QueueMemory{reinterpret_cast<Command*>(submissions_.data()),
                  reinterpret_cast<CompletionEntry*>(completions_.data()), entries,
                  doorbell(nvme::submission_doorbell(0, stride)), doorbell(nvme::completion_doorbell(0, stride))});
  port_->set_bus_master(true);
  write(Register::mask_set, 0xFFFF'FFFF);
  write(Register::admin_sizes, (entries - 1) << 16 | (entries - 1));
  write_long(Register::admin_submission, submissions_.bus());
  write_long(Register::admin_completion, completions_.bus());
  write(Register::configuration, kEnable | kSubmissionEntryLog | kCompletionEntryLog);
  wait_for("become ready", ready_timeout_ns(), true, [](ControllerStatus status) { return status.ready(); });
  enabled_ = true;
}

void Controller::reset() {
  const std::lock_guard lock(mutex_);
  disable();
  try {
    enable();
    request_queues();
  } catch (...) {
    try {
      disable();
    } catch (const Failure&) {  // the first failure is the one to report
    }
    throw;
  }
}

void Controller::shut_down() {
  const std::lock_guard lock(mutex_);
  if (!enabled_) return;
  try {
    for (std::size_t number = 1; number < used_.size(); ++number) {
      if (used_[number]) delete_locked(static_cast<std::uint16_t>(number));
    }
    const std::uint32_t configuration = read(Register::configuration);
    write(Register::configuration, (configuration & ~kShutdownMask) | kShutdownNormal);
    wait_for("shut down", std::max(info_.shutdown_ns, kShortestShutdown), true,
             [](ControllerStatus status) { return status.shutdown_complete(); });
  } catch (...) {
    if (enabled_) disable();
    throw;
  }
  disable();
}

// --- admin commands --------------------------------------------------------------------------------------------------

/// Runs an admin command; returns dword 0 of its completion. If the command does not end, disables the controller.
std::uint32_t Controller::execute(const std::string& what, const Command& command) {
  if (!enabled_) throw failure(what + ": the controller is disabled");
  std::optional<Ended> ended;
  try {
    const std::uint64_t begin = now_ns();
    const bool sent = admin_->submit(0, begin, [&](std::uint16_t id) {
      Command numbered = command;
      numbered.opcode_and_id = opcode_and_id(command.opcode(), id);
      return numbered;
    });
    if (!sent) throw failure(what + ": the admin queue is full");
    admin_->flush();
    Backoff backoff;
    while (!ended) {
      const std::uint64_t now = now_ns();  // before the poll, so that a late completion is found
      admin_->poll([&](const Ended& end) { ended = end; });
      if (ended) break;
      check_health();
      admin_->check_timeouts(now, settings_.command_timeout_ns);
      backoff.wait();
    }
  } catch (const Failure& failure) {
    std::string text = what + ": " + failure.what();
    try {
      disable();
    } catch (const Failure& other) {
      text += fmt::format("; disabling it failed: {}", other.what());
    }
    throw Failure(text);
  }
  if (!ended->status.ok()) throw failure(fmt::format("{} failed: {}", what, describe(ended->status)));
  return ended->result;
}

/// Fills identified().
void Controller::identify(Identify structure, std::uint32_t namespace_id, const std::string& what) {
  Command command = admin_command(AdminOpcode::identify, static_cast<std::uint32_t>(structure), 0, data_.bus());
  command.namespace_id = namespace_id;
  execute(what, command);
}

void Controller::identify_all() {
  try {
    identify(Identify::controller, 0, "Identify Controller");
    info_ = parse_controller(identified(), capabilities_.min_page());
    identify(Identify::active_namespaces, 0, "Identify (active namespaces)");
    for (const std::uint32_t id : parse_namespace_list(identified(), info_.namespaces)) {
      identify(Identify::name_space, id, fmt::format("Identify Namespace {}", id));
      namespaces_.push_back(parse_namespace(identified(), id));
    }
  } catch (const Failure& failure) {
    const std::string text = failure.what();
    throw text.starts_with(name()) ? failure : Failure(fmt::format("{}: {}", name(), text));
  }
}

/// Requests I/O queues (Set Features, Number of Queues): they must be requested once after each reset.
void Controller::request_queues() {
  const std::uint32_t wanted = std::clamp<std::uint32_t>(settings_.max_queue_pairs, 1, 0xFFFE) - 1;
  const std::uint32_t granted =
      execute("Set Features (number of queues)",
              admin_command(AdminOpcode::set_features, kNumberOfQueues, wanted << 16 | wanted));
  const std::uint32_t most = std::min({granted & 0xFFFF, granted >> 16, wanted}) + 1;
  max_pairs_ = static_cast<std::uint16_t>(most);
  used_.assign(most + 1, false);
  used_[0] = true;
}

// --- I/O queue pairs -------------------------------------------------------------------------------------------------

QueueId Controller::create_queues(const QueueAddresses& at) {
  if (at.entries < 2 || at.entries > max_entries()) {
    throw failure(fmt::format("queues of {} entries are not possible; allowed: 2 to {}", at.entries, max_entries()));
  }
  if (at.submissions % kPage != 0 || at.completions % kPage != 0) throw failure("a queue does not begin on a page");
  const std::lock_guard lock(mutex_);
  if (!enabled_) throw failure("the controller is disabled");
  const auto free = std::find(used_.begin(), used_.end(), false);
  if (free == used_.end()) throw failure(fmt::format("all of its {} queue pairs are in use", max_pairs_));
  const auto number = static_cast<std::uint16_t>(free - used_.begin());
  submission_doorbell({number, generation_});  // throws if the registers have no doorbells for it
  completion_doorbell({number, generation_});
  const std::uint32_t shape = (at.entries - 1) << 16 | number;
  constexpr std::uint32_t kContiguous = 1;
  execute(fmt::format("creating completion queue {}", number),
          admin_command(AdminOpcode::create_completion_queue, shape, kContiguous, at.completions));
  try {
    execute(fmt::format("creating submission queue {}", number),
            admin_command(AdminOpcode::create_submission_queue, shape,
                          static_cast<std::uint32_t>(number) << 16 | kContiguous, at.submissions));
  } catch (const Failure&) {
    if (enabled_) {
      execute(fmt::format("deleting completion queue {}", number),
              admin_command(AdminOpcode::delete_completion_queue, number, 0));
    }
    throw;
  }
  used_[number] = true;
  return {number, generation_};
}

void Controller::delete_queues(const QueueId& id) {
  const std::lock_guard lock(mutex_);
  if (id.generation != generation_ || !used_.at(id.number)) return;
  try {
    delete_locked(id.number);
  } catch (const Failure&) {  // the queue may still exist, and its memory may be freed next
    if (enabled_) disable();
    throw;
  }
}

void Controller::delete_locked(std::uint16_t number) {
  execute(fmt::format("deleting submission queue {}", number),
          admin_command(AdminOpcode::delete_submission_queue, number, 0));
  execute(fmt::format("deleting completion queue {}", number),
          admin_command(AdminOpcode::delete_completion_queue, number, 0));
  used_[number] = false;
}

std::uint32_t* Controller::submission_doorbell(const QueueId& id) {
  return doorbell(nvme::submission_doorbell(id.number, capabilities_.doorbell_stride()));
}
std::uint32_t* Controller::completion_doorbell(const QueueId& id) {
  return doorbell(nvme::completion_doorbell(id.number, capabilities_.doorbell_stride()));
}

IoQueues::IoQueues(Controller& controller, std::uint32_t entries)
    : controller_(controller),
      submissions_(controller.port(), entries * sizeof(Command)),
      completions_(controller.port(), entries * sizeof(CompletionEntry)),
      id_(controller.create_queues({submissions_.bus(), completions_.bus(), entries})),
      queue_(controller.name(), id_.number,
             {reinterpret_cast<Command*>(submissions_.data()), reinterpret_cast<CompletionEntry*>(completions_.data()),
              entries, controller.submission_doorbell(id_), controller.completion_doorbell(id_)}) {}

IoQueues::~IoQueues() {
  try {
    controller_.delete_queues(id_);
  } catch (const std::exception&) {  // the controller has been disabled
  }
}

}  // namespace feedrate::storage::nvme
