#include "variants/feeding/queue.hpp"

#include <fmt/format.h>

#include "common/units.hpp"

namespace feedrate {

std::string why_too_many_slots(std::size_t slots, std::size_t message_bytes, std::size_t result_bytes) {
  const std::size_t bytes = slots * (stride_of(message_bytes) + stride_of(result_bytes));
  if (bytes <= kMaxSlotMemory) return "";
  return fmt::format("window and payload need {}B of slots; the limit is {}B", format_count(bytes),
                     format_count(kMaxSlotMemory));
}

std::string names_of_queues(bool (*holds)(const QueueEntry&)) {
  std::string names;
  for (const auto& [name, entry] : Queues::instance().entries()) {
    if (holds(entry)) names += (names.empty() ? "" : ", ") + name;
  }
  return names;
}

std::set<std::string> services_of_queues(bool (*holds)(const QueueEntry&)) {
  std::set<std::string> names;
  for (const auto& [name, entry] : Queues::instance().entries()) {
    if (holds(entry)) names.insert(entry.service);
  }
  return names;
}

}  // namespace feedrate
