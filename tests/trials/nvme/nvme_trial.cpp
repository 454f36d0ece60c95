// Random reads and writes through the user-space NVMe driver, each checked against a model:
//   nvme_trial PCI-ADDRESS [COMMANDS [SEED]]
// Two queue pairs with 64 commands in flight each; lengths from one block to the largest command; data at any multiple
// of four bytes. Halfway the controller is reset while commands are in flight. Then the controller is shut down, opened
// again, and all blocks are read. OVERWRITES the device. The last line is a summary; exit code 0: no error.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "common/clock.hpp"
#include "common/error.hpp"
#include "common/threads/threads.hpp"
#include "tests/trials/nvme/model.hpp"
#include "variants/storage/nvme/status.hpp"
#include "variants/storage/nvme/transfers.hpp"
#include "variants/storage/nvme/vfio.hpp"

namespace feedrate::trial {
namespace {

using namespace storage::nvme;

constexpr std::size_t kPairs = 2, kDepth = 64;
constexpr std::uint64_t kTestedBytes = std::uint64_t{64} << 20;  // the first part of the namespace
// Bytes of the largest command: its PRP list has two pages. QEMU accepts at most 1024 pages of data per command.
constexpr std::size_t kLargest = std::size_t{3} << 20;
constexpr std::uint64_t kTimeout = 60'000'000'000;  // ns
constexpr std::size_t kGuard = 64;                  // bytes around the data that must not change
constexpr unsigned char kUntouched = 0x5C;
constexpr std::uint64_t kInvalidEvery = 512;  // one command in this many lies outside the namespace and must fail

struct Job {
  bool write = false, invalid = false, settles = false;
  std::uint64_t lba = 0, version = 0;
  std::uint32_t blocks = 0;
  std::byte* data = nullptr;
  std::uint64_t bus = 0;
};

struct Counts {
  std::uint64_t reads = 0, writes = 0, rejected = 0, bytes = 0, lists = 0, chains = 0, wrong = 0, aborted = 0,
                resets = 0;
};

class Trial {
 public:
  Trial(Controller& controller, std::uint64_t seed)
      : controller_(controller),
        space_(controller.name_space(1)),
        model_(std::min(kTestedBytes, space_.bytes()) / space_.block_bytes, space_.block_bytes),
        random_(seed) {
    open_pairs();
    slot_bytes_ = (pairs_[0]->max_bytes() + 2 * kPage + kPage - 1) / kPage * kPage;
    memory_ = DmaMemory(controller.port(), kPairs * kDepth * slot_bytes_);
    jobs_.resize(kPairs * kDepth);
    for (std::size_t i = 0; i < jobs_.size(); ++i) free_[i / kDepth].push_back(i);
  }

  /// Writes every block.
  void initialise() {
    sweep(true);
    counts_ = {};
  }
  void run(std::uint64_t commands) {
    const std::uint64_t goal = done() + commands;
    while (done() < goal) {
      for (std::size_t pair = 0; pair < kPairs; ++pair) {
        const std::uint64_t left = goal - done() - in_flight();
        for (std::uint64_t i = 0; i < left && !free_[pair].empty() && submit_random(pair); ++i) {
          if (done() + in_flight() >= goal) break;
        }
      }
      poll();
    }
  }
  /// Resets the controller while commands are in flight, and accounts for each of them.
  void reset() {
    for (std::size_t pair = 0; pair < kPairs; ++pair) {
      while (!free_[pair].empty() && submit_random(pair)) {
      }
      pairs_[pair]->queue().flush();
    }
    controller_.reset();
    ++counts_.resets;
    std::vector<Job> unsettled;
    for (std::size_t pair = 0; pair < kPairs; ++pair) {
      const std::vector<std::uint64_t> tags = pairs_[pair]->queue().outstanding();
      if (tags.size() != kDepth - free_[pair].size()) throw Failure("the reset has lost track of a command");
      counts_.aborted += tags.size();
      for (const std::uint64_t tag : tags) {
        const Job& job = jobs_.at(tag);
        if (!job.invalid) model_.end(job.lba, job.blocks, job.write);
        if (job.write) unsettled.push_back(job);
        free_[pair].push_back(tag);
      }
    }
    open_pairs();
    for (const Job& job : unsettled) settle(job);
  }
  /// Reads and checks every block.
  void verify_all() { sweep(false); }

  const Counts& counts() const { return counts_; }
  std::uint64_t done() const { return counts_.reads + counts_.writes + counts_.rejected; }
  std::size_t max_bytes() const { return pairs_[0]->max_bytes(); }
  const Model& model() const { return model_; }
  void take_over(const Model& model) { model_ = model; }

 private:
  void open_pairs() {
    for (auto& pair : pairs_) pair.reset();
    for (auto& pair : pairs_) pair = std::make_unique<Transfers>(controller_, space_, kDepth + 1, kLargest);
  }
  std::size_t in_flight() const {
    std::size_t count = 0;
    for (const auto& pair : pairs_) count += pair->queue().in_flight();
    return count;
  }
  std::uint64_t below(std::uint64_t limit) {
    return std::uniform_int_distribution<std::uint64_t>(0, limit - 1)(random_);
  }
  std::uint32_t max_blocks() const {
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(max_bytes() / space_.block_bytes, model_.blocks()));
  }
  /// A length between one block and the largest command, with equally many in each power of two.
  std::uint32_t random_blocks() {
    const std::uint32_t most = max_blocks();
    if (below(64) == 0) return most;
    const double log = std::uniform_real_distribution<double>(0, std::log2(most + 1.0))(random_);
    return std::min(most, static_cast<std::uint32_t>(std::exp2(log)));
  }
  bool submit_random(std::size_t pair) {
    if (!pairs_[pair]->queue().has_room()) return false;
    Job job;
    job.write = below(2) == 0;
    job.invalid = below(kInvalidEvery) == 0;
    do {
      job.blocks = random_blocks();
      job.lba = below(model_.blocks() - job.blocks + 1);
    } while (!job.invalid && !model_.is_free(job.lba, job.blocks, job.write));
    if (job.invalid) job.lba = space_.blocks - job.blocks + 1 + below(job.blocks);
    submit(pair, job);
    return true;
  }
  void submit(std::size_t pair, Job job) {
    const std::size_t slot = free_[pair].back();
    const std::size_t bytes = std::size_t{job.blocks} * space_.block_bytes;
    const std::size_t at = slot * slot_bytes_ + kGuard + 4 * below((kPage - kGuard) / 4);
    job.data = memory_.data() + at;
    job.bus = memory_.bus() + at;
    if (job.write) job.version = ++versions_;
    std::memset(job.data - kGuard, kUntouched, bytes + 2 * kGuard);
    if (job.write) model_.fill(job.data, job.lba, job.blocks, job.version);
    if (!pairs_[pair]->submit(job.write ? IoOpcode::write : IoOpcode::read, job.lba, job.blocks, job.bus, slot,
                              now_ns())) {
      throw Failure("a queue with room has rejected a command");
    }
    free_[pair].pop_back();
    if (!job.invalid) model_.begin(job.lba, job.blocks, job.write);
    counts_.lists += list_pages_of(pages_of(job.bus % kPage, bytes)) > 0 ? 1 : 0;
    counts_.chains += list_pages_of(pages_of(job.bus % kPage, bytes)) > 1 ? 1 : 0;
    jobs_[slot] = job;
  }
  std::uint32_t poll() {
    std::uint32_t ended = 0;
    for (std::size_t pair = 0; pair < kPairs; ++pair) {
      pairs_[pair]->queue().flush();
      ended += pairs_[pair]->queue().poll([&](const Ended& end) { finish(pair, end); });
    }
    if (ended != 0) {
      backoff_.reset();
      return ended;
    }
    controller_.check_health();
    for (const auto& pair : pairs_) pair->queue().check_timeouts(now_ns(), kTimeout);
    backoff_.wait();
    return 0;
  }
  void finish(std::size_t pair, const Ended& end) {
    const Job& job = jobs_.at(end.tag);
    free_[pair].push_back(end.tag);
    if (job.invalid) {
      ++counts_.rejected;
      if (type_and_code(end.status) != kLbaOutOfRange) report(job, "must fail: LBA out of range", end.status);
      return;
    }
    const std::size_t bytes = std::size_t{job.blocks} * space_.block_bytes;
    counts_.bytes += bytes;
    ++(job.write ? counts_.writes : counts_.reads);
    model_.end(job.lba, job.blocks, job.write);
    if (!end.status.ok()) return report(job, "failed", end.status);
    if (job.write) {
      model_.set(job.lba, job.blocks, job.version);
    } else if (!job.settles && model_.count_wrong(job.data, job.lba, job.blocks) != 0) {
      report(job, "has wrong data", end.status);
    }
    for (std::size_t i = 0; i < kGuard; ++i) {
      if (job.data[bytes + i] == std::byte{kUntouched} &&
          job.data[-1 - static_cast<std::ptrdiff_t>(i)] == std::byte{kUntouched})
        continue;
      return report(job, "has changed memory outside its data", end.status);
    }
  }
  void report(const Job& job, const char* what, Status status) {
    ++counts_.wrong;
    if (counts_.wrong > 10) return;
    fmt::print("{} of {} blocks at {} (bus address {:#x}) {}: {}\n", job.write ? "write" : "read", job.blocks, job.lba,
               job.bus, what, describe(status));
  }
  /// Runs a command alone.
  void run_alone(const Job& job) {
    submit(0, job);
    while (in_flight() != 0) poll();
  }
  /// Finds out which blocks of an aborted write have been written.
  void settle(const Job& write) {
    if (write.invalid) return;
    Counts before = counts_;
    Job read = write;
    read.write = false;
    read.settles = true;
    const std::size_t slot = free_[0].back();
    run_alone(read);
    before.wrong = counts_.wrong;
    counts_ = before;  // the read is not one of the random commands
    const std::uint64_t wrong = model_.settle(jobs_[slot].data, write.lba, write.blocks, write.version);
    if (wrong != 0) report(write, "was aborted, and blocks hold neither version", Status{});
  }
  void sweep(bool write) {
    for (std::uint64_t lba = 0; lba < model_.blocks();) {
      Job job;
      job.write = write;
      job.lba = lba;
      job.blocks = static_cast<std::uint32_t>(std::min<std::uint64_t>(max_blocks(), model_.blocks() - lba));
      const std::size_t pair = lba / max_blocks() % kPairs;
      while (free_[pair].empty()) poll();
      submit(pair, job);
      lba += job.blocks;
    }
    while (in_flight() != 0) poll();
  }

  Controller& controller_;
  NamespaceInfo space_;
  Model model_;
  std::mt19937_64 random_;
  std::size_t slot_bytes_ = 0;
  DmaMemory memory_;
  std::array<std::unique_ptr<Transfers>, kPairs> pairs_;  // deleted before the memory
  std::vector<Job> jobs_;
  std::array<std::vector<std::size_t>, kPairs> free_;
  std::uint64_t versions_ = 0;
  Counts counts_;
  Backoff backoff_;
};

int run(const std::string& address, std::uint64_t commands, std::uint64_t seed) {
  Controller controller(std::make_unique<VfioPort>(address));
  fmt::print("{}: {} {} firmware {}, commands of at most {} bytes, queues of at most {} entries, {} queue pairs\n",
             address, controller.info().model, controller.info().serial, controller.info().firmware,
             controller.info().max_transfer, controller.max_entries(), controller.max_queue_pairs());
  Counts counts;
  const std::uint64_t begin = now_ns();
  std::optional<Model> model;
  {
    Trial trial(controller, seed);
    trial.initialise();
    trial.run(commands / 2);
    trial.reset();
    trial.run(commands - commands / 2);
    counts = trial.counts();
    model = trial.model();
  }
  const double seconds = static_cast<double>(now_ns() - begin) / 1e9;
  controller.shut_down();
  controller.reset();
  {
    Trial again(controller, seed + 1);
    again.take_over(*model);
    again.verify_all();
    counts.wrong += again.counts().wrong;
  }
  controller.shut_down();
  fmt::print(
      "nvme_trial: {}: {} commands ({} reads, {} writes, {} rejected as they must be; {} with PRP lists, {} of them of "
      "two pages), {} queue "
      "pairs, depth {}, {} reset, {} commands aborted by it, {:.2f} GB, {} errors, {:.1f} s, seed {}\n",
      counts.wrong == 0 ? "ok" : "FAILED", counts.reads + counts.writes + counts.rejected, counts.reads, counts.writes,
      counts.rejected, counts.lists, counts.chains, kPairs, kDepth, counts.resets, counts.aborted,
      static_cast<double>(counts.bytes) / 1e9, counts.wrong, seconds, seed);
  return counts.wrong == 0 ? 0 : 1;
}

}  // namespace
}  // namespace feedrate::trial

int main(int count, char** words) {
  if (count < 2 || count > 4) {
    fmt::print(stderr, "usage: {} PCI-ADDRESS [COMMANDS [SEED]]   (OVERWRITES the device)\n", words[0]);
    return 2;
  }
  try {
    return feedrate::trial::run(words[1], count > 2 ? std::strtoull(words[2], nullptr, 10) : 100'000,
                                count > 3 ? std::strtoull(words[3], nullptr, 10) : 1);
  } catch (const std::exception& failure) {
    fmt::print("nvme_trial: FAILED: {}\n", failure.what());
    return 1;
  }
}
