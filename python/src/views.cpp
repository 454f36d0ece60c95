#include "views.hpp"

namespace feedrate::python {

Views::Views(Device& device, const Kernel& work, const RingConfig& config)
    : config_(config), ring_(device, work, config) {}

void Views::start() {
  const std::lock_guard lock(start_mutex_);
  if (stopped_) throw Failure("the ring is closed");
  if (!started_) ring_.start();
  started_ = true;
}

std::optional<Block> Views::reserve(std::size_t n) {
  start();
  const std::lock_guard lock(in_);
  if (paused_ != 0) return std::nullopt;
  if (sending_) throw Failure("reserve(): another block of messages is open; a ring allows only one at a time");
  for (unsigned tried = 0; tried < config_.lanes; ++tried) {
    const unsigned index = next_in_++ % config_.lanes;
    const Messages room = ring_.lane(index).reserve(n);
    if (room.empty()) continue;
    const Block block{index, room.base, room.stride, room.count};
    for (std::size_t i = 0; i < block.count; ++i) {
      block.header(i) = {next_id_ + i, static_cast<std::uint32_t>(config_.message_bytes), 0};
    }
    return sending_ = block;
  }
  return std::nullopt;
}

void Views::publish(std::size_t n) {
  const std::lock_guard lock(in_);
  if (!sending_) throw Failure("no block of messages is open");
  if (n > sending_->count) throw BadInput("more messages are published than the block has");
  for (std::size_t i = 0; i < n; ++i) {
    if (const std::uint32_t length = sending_->header(i).length; length > config_.message_bytes) {
      sending_.reset();
      throw BadInput("length: invalid value " + std::to_string(length) + "; allowed: 0 to " +
                     std::to_string(config_.message_bytes));
    }
  }
  if (stopped_) {  // publishing would revoke the stop request to the grid
    sending_.reset();
    throw Failure("the ring was closed before the end of the block");
  }
  if (n != 0) ring_.lane(sending_->lane).publish(n);
  next_id_ += n;
  sending_.reset();
}

std::optional<Block> Views::poll(std::size_t n) {
  start();
  const std::lock_guard lock(out_);
  if (receiving_) throw Failure("poll(): another block of results is open; a ring allows only one at a time");
  for (unsigned tried = 0; tried < config_.lanes; ++tried) {
    const unsigned index = next_out_++ % config_.lanes;
    const ConstMessages results = ring_.lane(index).poll(n);
    if (results.empty()) continue;
    Block block{index, const_cast<std::byte*>(results.base), results.stride, results.count};
    for (std::size_t i = 0; i < block.count; ++i) block.failed |= (block.header(i).length & kFailed) != 0;
    return receiving_ = block;
  }
  return std::nullopt;
}

void Views::release() {
  const std::lock_guard lock(out_);
  if (!receiving_) throw Failure("no block of results is open");
  ring_.lane(receiving_->lane).release(receiving_->count);
  receiving_.reset();
}

void Views::stop(RingStop how, std::chrono::nanoseconds patience) {
  {
    const std::scoped_lock lock(start_mutex_, in_);
    if (stopped_) return;
    stopped_ = true;
  }
  try {
    if (started_) ring_.stop(how, patience);
  } catch (const Failure&) {  // the device failed, so no more results arrive
  }
}

void Views::pause(bool on) {
  const std::lock_guard lock(in_);
  paused_ += on ? 1 : -1;
}

bool Views::parked() {
  const std::lock_guard lock(in_);
  return !sending_ && resting();
}

bool Views::resting() const { return !started_ || stopped_ || ring_.stats().parked_lanes == config_.lanes; }

}  // namespace feedrate::python
