#include "experiments/storage/block_load.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "common/error.hpp"

namespace feedrate::storage {
namespace {

constexpr std::size_t kGroup = 64;   // most blocks of one kernel
constexpr std::size_t kGroups = 16;  // most kernels at once

}  // namespace

BlockLoad::BlockLoad(std::unique_ptr<Engine> engine, Device& device, const FileSet& files, const Pattern& pattern,
                     const BlockShape& shape)
    : files_(files),
      pattern_(pattern),
      shape_(shape),
      blocks_per_file_((files.files().front().bytes - shape.shift) / shape.block),
      device_(device.allocate_device(window() * shape.block)),
      lists_(device.allocate_host(kGroups * kGroup * (sizeof(Block) + sizeof(Verdict)), HostMemory::pinned)),
      requests_(window()),
      numbers_(window()),
      versions_(window()),
      stream_(device.stream()),
      engine_(std::move(engine)) {
  auto* const blocks = reinterpret_cast<Block*>(lists_.data());
  auto* const verdicts = reinterpret_cast<Verdict*>(blocks + kGroups * kGroup);
  for (std::size_t i = 0; i < kGroups; ++i) {
    spare_.push_back({blocks + i * kGroup, verdicts + i * kGroup, device.event(), {}});
  }
}

BlockLoad::~BlockLoad() {
  try {
    stream_->synchronize();
  } catch (const std::exception&) {  // an earlier call has reported it
  }
}

bool BlockLoad::submit(std::size_t slot, std::uint64_t number) {
  if (shape_.once && number >= pattern_.size()) {
    exhausted_ = true;
    return false;
  }
  const std::uint64_t block = pattern_.at(number);
  const Request request{.id = slot,
                        .file = static_cast<unsigned>(block / blocks_per_file_),
                        .offset = block % blocks_per_file_ * shape_.block + shape_.shift,
                        .bytes = shape_.block,
                        .device = device_.data() + slot * shape_.block};
  numbers_[slot] = 0;
  versions_[slot] = shape_.version_of(number, pattern_.size());
  if (shape_.operation == Operation::write) {
    // A pass ends before the next one begins: two writes of a block at once could end in either order.
    if (spare_.empty() || (number % pattern_.size() == 0 && under_way_ != 0)) return false;
    requests_[slot] = request;
    Group group = std::move(spare_.back());
    spare_.pop_back();
    group.slots.assign(1, slot);
    launch(group, false);
    running_.push_back(std::move(group));
  } else {
    if (!engine_->submit(request)) return false;
    requests_[slot] = request;
  }
  numbers_[slot] = number + 1;
  requested_ += request.bytes;
  ++under_way_;
  return true;
}

std::size_t BlockLoad::poll(std::span<std::size_t> ended) {
  engine_->flush();
  while (!running_.empty() && running_.front().event->ready()) {
    finish(running_.front());
    spare_.push_back(std::move(running_.front()));
    running_.pop_front();
  }
  while (!generated_.empty() && engine_->submit(requests_[generated_.front()])) generated_.pop_front();
  if (!spare_.empty()) {
    std::array<Completion, kGroup> done;
    const std::size_t count = engine_->poll(done);
    for (const Completion& each : std::span(done).first(count)) {
      const Request& request = requests_[each.id];
      numbers_[each.id] = 0;
      if (each.error == ETIMEDOUT) fail(request, "no completion arrived within the engine's time limit");
      if (each.error != 0) fail(request, std::strerror(each.error));
      if (each.bytes < request.bytes) {
        fail(request, fmt::format("the file ended: {} of {} bytes", each.bytes, request.bytes));
      }
    }
    if (count != 0 && shape_.operation == Operation::write) {
      for (const Completion& each : std::span(done).first(count)) ended_.push_back(each.id);
    } else if (count != 0) {
      Group group = std::move(spare_.back());
      spare_.pop_back();
      group.slots.clear();
      for (const Completion& each : std::span(done).first(count)) group.slots.push_back(each.id);
      launch(group, true);
      running_.push_back(std::move(group));
    }
  }
  const std::size_t count = std::min(ended.size(), ended_.size());
  std::copy_n(ended_.begin(), count, ended.begin());
  ended_.erase(ended_.begin(), ended_.begin() + static_cast<std::ptrdiff_t>(count));
  under_way_ -= count;
  return count;
}

Block BlockLoad::block_of(std::size_t slot) const {
  const Request& request = requests_[slot];
  return {request.device, request.bytes, files_.key(request.file, versions_[slot]), request.offset};
}

void BlockLoad::launch(Group& group, bool check) {
  for (std::size_t i = 0; i < group.slots.size(); ++i) {
    group.blocks[i] = block_of(group.slots[i]);
    group.verdicts[i] = {};
  }
  stream_->launch(ContentLaunch(group.blocks, check ? group.verdicts : nullptr,
                                static_cast<unsigned>(group.slots.size()), shape_.block));
  stream_->record(*group.event);
}

void BlockLoad::finish(const Group& group) {
  for (std::size_t i = 0; i < group.slots.size(); ++i) {
    const std::size_t slot = group.slots[i];
    if (shape_.operation == Operation::write) {
      generated_.push_back(slot);
      continue;
    }
    const Verdict& verdict = group.verdicts[i];
    if (verdict.wrong != 0) {
      fail(requests_[slot], fmt::format("{} of {} words are wrong in device memory, the first at offset {}",
                                        verdict.wrong, (shape_.block + 7) / 8, requests_[slot].offset + verdict.first));
    }
    ended_.push_back(slot);
  }
}

std::string BlockLoad::oldest() const {
  std::size_t found = numbers_.size();
  for (std::size_t slot = 0; slot < numbers_.size(); ++slot) {
    if (numbers_[slot] != 0 && (found == numbers_.size() || numbers_[slot] < numbers_[found])) found = slot;
  }
  return found == numbers_.size() ? "" : text_of(requests_[found]);
}

std::string BlockLoad::text_of(const Request& request) const {
  return fmt::format("{} of {} bytes at offset {} of {}", shape_.operation == Operation::read ? "read" : "write",
                     request.bytes, request.offset, files_.files()[request.file].path);
}

void BlockLoad::fail(const Request& request, const std::string& why) const {
  const auto path = engine_->path();
  const auto fault = path.find("injected");
  throw Failure(fmt::format("{}: {}{}", text_of(request), why,
                            fault == path.end() ? "" : fmt::format(" (injected: {})", fault->second)));
}

}  // namespace feedrate::storage
