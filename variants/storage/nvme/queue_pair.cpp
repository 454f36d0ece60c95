#include "variants/storage/nvme/queue_pair.hpp"

#include <fmt/format.h>

#include "common/error.hpp"

namespace feedrate::storage::nvme {

QueuePair::QueuePair(std::string name, std::uint16_t number, const QueueMemory& memory)
    : name_(std::move(name)),
      number_(number),
      submissions_(memory.submissions, memory.entries, memory.submission_doorbell),
      completions_(memory.completions, memory.entries, memory.completion_doorbell),
      flying_(memory.entries - 1) {
  for (std::size_t i = flying_.size(); i-- > 0;) free_.push_back(static_cast<std::uint16_t>(i));
}

Ended QueuePair::accept(const Completed& completed) {
  const CompletionState& state = completed.state;
  const auto invalid = [&](const std::string& what) {
    return Failure(fmt::format("{}: invalid completion in queue {}: {}", name_, number_, what));
  };
  if (state.submission_queue() != number_) {
    throw invalid(fmt::format("it belongs to submission queue {}", state.submission_queue()));
  }
  if (state.id() >= flying_.size() || !flying_[state.id()].flies) {
    throw invalid(fmt::format("command {} is not in flight", state.id()));
  }
  if (!submissions_.advance(state.submission_head())) {
    throw invalid(fmt::format("head {} is past the submitted commands", state.submission_head()));
  }
  Flying& flying = flying_[state.id()];
  flying.flies = false;
  free_.push_back(state.id());
  return {flying.tag, state.status(), completed.result};
}

void QueuePair::check_timeouts(std::uint64_t now_ns, std::uint64_t timeout_ns) const {
  if (in_flight() == 0) return;
  for (std::size_t id = 0; id < flying_.size(); ++id) {
    const Flying& flying = flying_[id];
    if (!flying.flies || now_ns < flying.since_ns || now_ns - flying.since_ns <= timeout_ns) continue;
    throw Failure(fmt::format("{}: command {} (opcode {:#04x}) of queue {} has not ended within {:.3g} s", name_, id,
                              flying.opcode, number_, static_cast<double>(timeout_ns) / 1e9));
  }
}

std::vector<std::uint64_t> QueuePair::outstanding() const {
  std::vector<std::uint64_t> tags;
  for (const Flying& flying : flying_) {
    if (flying.flies) tags.push_back(flying.tag);
  }
  return tags;
}

}  // namespace feedrate::storage::nvme
