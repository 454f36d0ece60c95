#pragma once
#include <algorithm>
#include <string>

#include "common/axes.hpp"
#include "common/redis/own_keys.hpp"
#include "common/redis/script.hpp"
#include "variants/feeding/point.hpp"
#include "variants/feeding/queues/redis/elements.hpp"

namespace feedrate::redis_queue {

/// The axis of queues that can answer each id only once.
struct OnceOptions {
  double once_s = 0;
};
inline const Axes<OnceOptions>& once_axes() {
  static const auto kAxes = Axes<OnceOptions>().number(
      "once", &OnceOptions::once_s, {0, 86400, 1, "once_seconds"},
      "seconds within which an id gets only one result, however often it is delivered; 0: one result per delivery");
  return kAxes;
}
inline double once_window(const Point& point) { return once_axes().of(point.own).once_s; }

/// Pushes a result only if its id had none within the window: tasks are delivered at least once, results effectively
/// once. The set `seen` has the ids of the current window, and `seen:before` the ids of the previous one; `seen:window`
/// identifies the current window. A failure does not count as a result. All workers of a queue must use the same window
/// length.
class Once {
 public:
  Once(redis::Connection& connection, const KeyNames& names, std::string kind, double window_seconds, bool shared)
      : names_(names),
        kind_(std::move(kind)),
        window_ms_(redis::milliseconds(std::max(0.001, window_seconds))),
        lifetime_(shared ? redis::kLifetimeMs : "0"),
        push_(connection, kPush) {}

  void push(redis::Connection& connection, const std::string& key, const ConstMessages& results) const {
    std::vector<std::string_view> arguments{names_.prefix(), kind_, window_ms_, lifetime_};
    for (std::size_t i = 0; i < results.count; ++i) {
      const auto* bytes = reinterpret_cast<const char*>(results.base + i * results.stride);
      arguments.emplace_back(bytes, stride_of(payload_bytes(results.header(i))));
    }
    push_.append(connection, {key}, arguments);
  }

 private:
  // KEYS: results; ARGV: prefix, kind, window in ms, lifetime of keys in ms or 0, then the results. Returns the number
  // of new results.
  static constexpr std::string_view kPush = R"lua(
local window = tonumber(ARGV[3])
local time = redis.call('TIME')
local now = math.floor((time[1] * 1000 + time[2] / 1000) / window)
local current, before, which = ARGV[1] .. ':seen', ARGV[1] .. ':seen:before', ARGV[1] .. ':seen:window'
-- A window's name is its length and number: if the length changes or the clock jumps, all ids are forgotten.
local function named(number) return ARGV[3] .. ':' .. string.format('%.0f', number) end
local last = redis.call('GET', which)
if last ~= named(now) and last ~= named(now + 1) then  -- the clock may have been set back a little
  redis.call('UNLINK', before)
  if last == named(now - 1) and redis.call('EXISTS', current) == 1 then
    redis.call('RENAME', current, before)
  else
    redis.call('UNLINK', current)
  end
  redis.call('SET', which, named(now))
end
local new, succeeded, here = {}, {}, {}
for i = 5, #ARGV do
  local id, failed = ARGV[i]:sub(1, 8), ARGV[i]:byte(12) >= 128
  if not here[id] and redis.call('SISMEMBER', before, id) == 0 and redis.call('SISMEMBER', current, id) == 0 then
    new[#new + 1] = ARGV[i]
    if not failed then
      here[id] = true
      succeeded[#succeeded + 1] = id
    end
  end
end
-- Results go first: if the server rejects them, the ids must not count as answered.
if ARGV[2] == 'stream' then
  for _, result in ipairs(new) do redis.call('XADD', KEYS[1], '*', 'm', result) end
else
  for i = 1, #new, 4000 do redis.call('LPUSH', KEYS[1], unpack(new, i, math.min(i + 3999, #new))) end
end
for i = 1, #succeeded, 4000 do
  redis.call('SADD', current, unpack(succeeded, i, math.min(i + 3999, #succeeded)))
end
local lifetime = ARGV[4] ~= '0' and math.min(2 * window, tonumber(ARGV[4])) or 2 * window
for _, key in ipairs({current, before, which}) do redis.call('PEXPIRE', key, lifetime) end
return #new
)lua";

  KeyNames names_;
  std::string kind_, window_ms_, lifetime_;
  redis::Script push_;
};

}  // namespace feedrate::redis_queue
