#include "experiments/handoff/rounds.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstring>

#include "common/clock.hpp"
#include "kernels/stages/stage_kernel.hpp"

namespace feedrate::handoff {

Rounds::Rounds(const Options& options, const Setting& setting, Device& device, Readers& readers)
    : options_(options),
      setting_(setting),
      exporter_(entry_of(options).exporter({setting_, device})),
      words_((setting.bytes - sizeof(ItemHeader)) / sizeof(std::uint64_t)),
      sums_(words_, stage_map(0, 1).then(stage_map(1, 1))),
      kernel_{{StageKind::generate, 0, 1, words_}, blocks_for(device)},
      ids_(device.allocate_host(options.tensors * kIdBytes, HostMemory::pinned)),
      device_ids_(device.allocate_device(options.tensors * kIdBytes)),
      stream_(device.stream()),
      readers_(readers) {
  for (const auto& reader : readers_) reader->begin(options.way, setting_);
}

/// An aborted cell leaves tensors behind. The readers end first, since they may still be reading them.
Rounds::~Rounds() {
  if (places_.empty()) return;
  readers_.clear();
  for (unsigned tensor = 0; tensor < places_.size(); ++tensor) {
    try {
      exporter_->destroy(tensor);
    } catch (const std::exception& error) {
      spdlog::warn("handoff: a tensor could not be deleted: {}", error.what());
    }
  }
}

void Rounds::hand_over(Seen* seen) {
  const bool fresh = places_.empty();
  if (fresh) create(seen);
  write();
  const std::uint64_t ready = now_ns();
  for (unsigned tensor = 0; tensor < options_.tensors; ++tensor) exporter_->offer(tensor);
  std::vector<Ticket> tickets;
  for (unsigned tensor = 0; fresh && tensor < options_.tensors; ++tensor) tickets.push_back(exporter_->ticket(tensor));
  for (const auto& reader : readers_) reader->ask({Op::take, fresh, options_.tensors}, tickets);
  std::uint64_t started = 0, read = 0;
  for (const auto& reader : readers_) {
    const Answer answer = reader->answer(read_);
    started = std::max(started, answer.started_ns);
    read = std::max(read, answer.read_ns);
    if (seen != nullptr) check(*seen);
  }
  if (seen == nullptr) return;
  seen->handoff.record(read - ready);
  seen->start.record(started - ready);
}

void Rounds::let_go(Seen* seen) {
  for (const auto& reader : readers_) reader->ask({Op::close, 0, options_.tensors}, {});
  for (const auto& reader : readers_) reader->answer(read_);
  for (unsigned tensor = 0; tensor < options_.tensors; ++tensor) {
    const std::uint64_t begin = now_ns();
    exporter_->destroy(tensor);
    if (seen != nullptr) seen->destroy.record(now_ns() - begin);
  }
  places_.clear();
}

void Rounds::create(Seen* seen) {
  for (unsigned tensor = 0; tensor < options_.tensors; ++tensor) {
    const std::uint64_t begin = now_ns();
    places_.push_back(exporter_->create(tensor));
    if (seen != nullptr) seen->create.record(now_ns() - begin);
  }
}

void Rounds::write() {
  for (unsigned tensor = 0; tensor < options_.tensors; ++tensor) {
    const std::uint64_t id = first_id_ + tensor;
    std::memcpy(ids_.data() + tensor * kIdBytes, &id, sizeof id);
  }
  stream_->copy_to_device(device_ids_.data(), ids_.data(), options_.tensors * kIdBytes);
  for (unsigned tensor = 0; tensor < options_.tensors; ++tensor) {
    stream_->launch(kernel_.on(device_ids_.data() + tensor * kIdBytes, places_[tensor]));
  }
  stream_->synchronize();
  written_ = first_id_;
  first_id_ += options_.tensors;
}

void Rounds::check(Seen& seen) const {
  for (unsigned tensor = 0; tensor < options_.tensors; ++tensor) {
    ++seen.verified;
    const std::uint64_t id = written_ + tensor;
    const Read found = tensor < read_.size() ? read_[tensor] : Read{};
    if (found.id == id && found.sum == sums_(id)) continue;
    if (seen.wrong++ == 0) {
      seen.first_wrong = fmt::format("tensor {} was read with id {} and checksum {:016x}, expected {} and {:016x}",
                                     tensor, found.id, found.sum, id, sums_(id));
    }
  }
}

}  // namespace feedrate::handoff
