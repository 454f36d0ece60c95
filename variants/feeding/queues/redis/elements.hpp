#pragma once
#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "common/clock.hpp"
#include "common/message/message.hpp"

/// The format of messages in Redis: an *element* is one or more messages back to back, each padded to 16 bytes.
/// common/redis/README.md documents the format for clients.
namespace feedrate::redis_queue {

inline constexpr auto kGroup = "feedrate";  ///< consumer group of a stream of tasks

/// The names of one queue's keys.
class KeyNames {
 public:
  explicit KeyNames(std::string prefix) : prefix_(std::move(prefix)) {}
  const std::string& prefix() const { return prefix_; }
  std::string tasks() const { return prefix_ + ":tasks"; }
  std::string results(unsigned producer) const { return fmt::format("{}:results:{}", prefix_, producer); }
  std::string processing(std::string_view worker) const { return fmt::format("{}:processing:{}", prefix_, worker); }
  std::string alone(std::string_view worker) const { return fmt::format("{}:alone:{}", prefix_, worker); }
  std::string leases() const { return prefix_ + ":leases"; }
  std::string dead_workers() const { return prefix_ + ":dead_workers"; }
  std::string suspects() const { return prefix_ + ":suspects"; }
  std::string delayed() const { return prefix_ + ":delayed"; }
  std::string delays() const { return prefix_ + ":delays"; }  ///< counter of delayed tasks
  std::string history() const { return prefix_ + ":history"; }
  std::string dead() const { return prefix_ + ":dead"; }
  std::string seen() const { return prefix_ + ":seen"; }  ///< ids answered in the current window, `seen_window`
  std::string seen_before() const { return prefix_ + ":seen:before"; }
  std::string seen_window() const { return prefix_ + ":seen:window"; }
  std::vector<std::string> of_all_workers() const {
    return {tasks(),   leases(), dead_workers(), suspects(),    delayed(),    delays(),
            history(), dead(),   seen(),         seen_before(), seen_window()};
  }

 private:
  std::string prefix_;
};

/// The last word of a task's header. Clients that do not use it write 0.
struct TaskInfo {
  std::uint8_t version = 0;   ///< 1: an Extension lies between header and payload
  std::uint8_t attempts = 0;  ///< number of earlier deliveries
  std::uint16_t reserved = 0;
};
static_assert(sizeof(TaskInfo) == sizeof(Header::checksum));
inline constexpr std::uint8_t kNewestVersion = 1;

struct Extension {
  std::uint64_t deadline_ms = 0;  ///< Unix time after which the result is no longer wanted; 0: no deadline
  std::uint64_t reserved = 0;
};
static_assert(sizeof(Extension) == 16);

inline TaskInfo info_of(const Header& task) { return std::bit_cast<TaskInfo>(task.checksum); }
inline void set_info(Header& task, const TaskInfo& info) { task.checksum = std::bit_cast<std::uint32_t>(info); }

/// A message inside an element. `bytes` is the complete message without padding; it is empty if the remaining bytes are
/// not a message.
struct Parsed {
  Header header{};
  Extension extension = {};
  std::string_view bytes, payload;
  std::size_t stride = 0;  ///< distance in bytes from this message to the next one
};

/// Parses the message at the start of `bytes`.
inline Parsed parse(std::string_view bytes) {
  Parsed parsed;
  if (bytes.size() < sizeof(Header)) return parsed;
  std::memcpy(&parsed.header, bytes.data(), sizeof(Header));
  std::size_t head = sizeof(Header);
  if (info_of(parsed.header).version == 1) {
    if (bytes.size() < head + sizeof(Extension)) return parsed;
    std::memcpy(&parsed.extension.deadline_ms, bytes.data() + head, sizeof parsed.extension.deadline_ms);
    head += sizeof(Extension);
  }
  const std::size_t length = payload_bytes(parsed.header);
  if (bytes.size() - head < length) return parsed;
  parsed.bytes = bytes.substr(0, head + length);
  parsed.payload = parsed.bytes.substr(head);
  parsed.stride = (head + length + 15) & ~std::size_t{15};
  return parsed;
}

/// Encodes a task again, with the current contents of its header and extension.
inline std::string encode(Header header, const Extension& extension, std::string_view payload) {
  std::string bytes;
  header.length = static_cast<std::uint32_t>(payload.size());
  TaskInfo info = info_of(header);
  info.version = extension.deadline_ms != 0 ? 1 : 0;
  set_info(header, info);
  bytes.append(reinterpret_cast<const char*>(&header), sizeof header);
  if (info.version == 1) bytes.append(reinterpret_cast<const char*>(&extension), sizeof extension);
  bytes.append(payload);
  return bytes;
}

/// Lua functions for this format, which every script includes.
inline constexpr std::string_view kMessageFunctions = R"lua(
local function u32(text, at)
  local a, b, c, d = text:byte(at, at + 3)
  return a + 256 * b + 65536 * c + 16777216 * d
end
local function le32(n)
  return string.char(n % 256, math.floor(n / 256) % 256, math.floor(n / 65536) % 256, math.floor(n / 16777216) % 256)
end
local function id_of(message) return message:sub(1, 8) end
local function producer_of(message) return message:byte(7) + 256 * message:byte(8) end
-- Whether the result is for one of the first `n` producers.
local function is_of_first(n, message) return #message >= 8 and producer_of(message) < tonumber(n) end
local function attempts_of(task) return task:byte(14) end
local function with_attempts(task, n) return task:sub(1, 13) .. string.char(n) .. task:sub(15) end
local function failed_result(task, code) return id_of(task) .. le32(0x80000000 + code) .. '\0\0\0\0' end
-- The length of the message at `at`, without padding; nil if the bytes there are not a message.
local function length_at(element, at)
  if at + 15 > #element then return nil end
  local length = u32(element, at + 8)
  if length >= 0x80000000 then length = 0 end
  local bytes = 16 + (element:byte(at + 12) == 1 and 16 or 0) + length
  return at + bytes - 1 <= #element and bytes or nil
end
)lua";
inline std::string script_of(std::initializer_list<std::string_view> parts) {
  std::string script(kMessageFunctions);
  for (const std::string_view part : parts) script += part;
  return script;
}

/// Calls `f` with elements of `pack` messages each; the last element may hold fewer. Within an element each message
/// takes the space that its length requires, not its slot's stride. Slots that are full already have that form and are
/// not copied.
template <class F>
void for_each_element(const ConstMessages& messages, std::size_t pack, F&& f) {
  std::string assembled;
  for (std::size_t begin = 0; begin < messages.count; begin += pack) {
    const ConstMessages run = messages.from(begin).first(pack);
    const auto bytes_of = [&](std::size_t i) { return stride_of(payload_bytes(run.header(i))); };
    const auto* first = reinterpret_cast<const char*>(run.base);
    bool full = true;
    for (std::size_t i = 0; i < run.count; ++i) full &= bytes_of(i) == run.stride;
    if (full) {
      f(std::string_view(first, run.count * run.stride));
      continue;
    }
    assembled.clear();
    for (std::size_t i = 0; i < run.count; ++i) assembled.append(first + i * run.stride, bytes_of(i));
    f(std::string_view(assembled));
  }
}

}  // namespace feedrate::redis_queue
