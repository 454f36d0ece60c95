#include "variants/feeding/queues/redis/redelivery.hpp"

#include <algorithm>
#include <cmath>
#include <exception>
#include <utility>

#include "common/clock.hpp"
#include "common/redis/own_keys.hpp"

namespace feedrate::redis_queue {
namespace {

constexpr double kMaxBeatSeconds = 0.25;  // longest time from the end of a lease until a dead worker is detected
constexpr double kBeatsInLease = 4;

// Shared by the scripts. Every key of the queue starts with `prefix`; if it has a hash tag, all keys are in one slot.
constexpr std::string_view kShared = R"lua(
local prefix, kind, worker = ARGV[1], ARGV[2], ARGV[3]
local lifetime, results_lifetime, max_letters = tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6]
local function key(name) return prefix .. ':' .. name end
local function now_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
-- On a server that others use, all of our keys expire.
local function keep(name) if lifetime > 0 then redis.call('PEXPIRE', name, lifetime) end end
-- Adds a task so that it is served next, if the queue's kind allows that.
local function add_task(element)
  if kind == 'stream' then redis.call('XADD', key('tasks'), '*', 'm', element)
  elseif kind == 'zset' then redis.call('ZADD', key('tasks'), 0, element)
  else redis.call('RPUSH', key('tasks'), element) end
  keep(key('tasks'))
end
local function remember(message, what)
  local id, line = id_of(message), now_ms() .. ' ' .. worker .. ': ' .. what
  local before = redis.call('HGET', key('history'), id)
  redis.call('HSET', key('history'), id, before and (before .. '\n' .. line) or line)
  keep(key('history'))
end
local function bury(message, attempts, what)
  remember(message, what)
  local id = id_of(message)
  redis.call('XADD', key('dead'), 'MAXLEN', max_letters, '*', 'm', message, 'error', what, 'attempts', attempts,
             'worker', worker, 'history', redis.call('HGET', key('history'), id))
  redis.call('HDEL', key('history'), id)
  keep(key('dead'))
end
local function answer(message, code)
  local name, result = key('results:' .. producer_of(message)), failed_result(message, code)
  -- A key of another type must not stop the script.
  if kind == 'stream' then redis.pcall('XADD', name, '*', 'm', result) else redis.pcall('LPUSH', name, result) end
  keep(name)
  if results_lifetime > 0 then redis.call('PEXPIRE', name, results_lifetime) end
end
)lua";

// ARGV[7]: the lease in ms, [8]: '1' at the first heartbeat, [9]: maximum attempts, [10]: the consumer group, [11]: the
// worker's name, which is the same in each incarnation (tasks that an earlier incarnation held are taken over at once),
// [12]: '1' if the earlier incarnation only lost its connections, so that no message is to blame.
constexpr std::string_view kBeat = R"lua(
local lease, first, max_attempts = tonumber(ARGV[7]), ARGV[8] == '1', tonumber(ARGV[9])
local group, name, resumed = ARGV[10], ARGV[11], ARGV[12] == '1'
local now = now_ms()
-- Calls `f` with each message of an element, and `rest` with any bytes at the end that are not a message.
local function each_message(element, f, rest)
  local at = 1
  for bytes in function() return length_at(element, at) end do
    f(element:sub(at, at + bytes - 1))
    at = at + math.ceil(bytes / 16) * 16
  end
  if at <= #element then rest(element:sub(at)) end
end
-- A message is abandoned only after it was served alone; otherwise another message of its batch may be to blame.
local function blame(element, dead, alone)
  local what = 'worker ' .. dead .. ' died while it held the message'
  each_message(element, function(message)
    local attempts = math.min(attempts_of(message) + 1, 255)
    if alone and attempts >= max_attempts then
      bury(message, attempts, what)
      answer(message, 6)
    else
      remember(message, what)
      redis.call('RPUSH', key('suspects'), with_attempts(message, attempts))
      keep(key('suspects'))
    end
  end, function(rest) bury(rest, 1, 'not a message: shorter than its header says') end)
end
-- One run takes over a limited number of tasks, so that other clients do not wait long. If more tasks remain, the
-- worker runs the script again at once.
local more = 0
-- Takes over pending entries of one dead consumer, or of all consumers without a lease, a few thousand at a time.
local function take_over_pending(consumer, innocent)
  local from, found = '-', false
  for page = 1, 5 do
    local pending
    if consumer then
      pending = redis.call('XPENDING', key('tasks'), group, '-', '+', 1000, consumer)
    else
      pending = redis.call('XPENDING', key('tasks'), group, 'IDLE', lease, from, '+', 1000)
    end
    for _, one in ipairs(pending) do
      from = '(' .. one[1]
      if consumer or not redis.call('ZSCORE', key('leases'), one[2]) then
        found = true
        local entry = redis.call('XRANGE', key('tasks'), one[1], one[1])[1]
        for i = 1, entry and #entry[2] or 0, 2 do
          if entry[2][i] == 'm' then
            if innocent then add_task(entry[2][i + 1]) else blame(entry[2][i + 1], one[2]) end
          end
        end
        redis.call('XACK', key('tasks'), group, one[1])
        redis.call('XDEL', key('tasks'), one[1])
      end
    end
    if #pending < 1000 then return end
  end
  if found then more = 1 end
end
-- Members of a sorted set of times that have passed.
local function due(name, most)
  local found = redis.call('ZRANGEBYSCORE', key(name), '-inf', now, 'LIMIT', 0, most)
  if #found == most then more = 1 end
  return found
end
local function take_over(dead, innocent)
  local suspect = redis.call('LRANGE', key('alone:' .. dead), 0, -1)
  local held = redis.call('LRANGE', key('processing:' .. dead), 0, -1)
  for _, element in ipairs(suspect) do
    if innocent then redis.call('LPUSH', key('suspects'), element) keep(key('suspects'))
    else blame(element, dead, true) end
  end
  innocent = innocent or #suspect > 0
  for i = #held, 1, -1 do
    if innocent then add_task(held[i]) else blame(held[#held + 1 - i], dead) end
  end
  redis.call('DEL', key('alone:' .. dead), key('processing:' .. dead))
  if kind == 'stream' then take_over_pending(dead, innocent) end
end
local function take_lease(dead, innocent)
  redis.call('ZREM', key('leases'), dead)
  redis.call('ZADD', key('dead_workers'), now + lease, dead)
  keep(key('dead_workers'))
  take_over(dead, innocent)
end
if lease > 0 then
  if first then
    for _, other in ipairs(redis.call('ZRANGE', key('leases'), 0, -1)) do
      if other:match('^(.*):[^:]*$') == name then take_lease(other, resumed) end
    end
  end
  if not first and not redis.call('ZSCORE', key('leases'), worker) then
    redis.call('ZADD', key('dead_workers'), now + lease, worker)  -- one of our commands may still be in flight
    keep(key('dead_workers'))
    return {0, 0, 0}
  end
  redis.call('ZADD', key('leases'), now + lease, worker)
  keep(key('leases'))
  for _, dead in ipairs(due('leases', 2)) do take_lease(dead, false) end
  for _, dead in ipairs(due('dead_workers', 2)) do
    take_over(dead, false)
    if kind ~= 'stream' then
      redis.call('ZREM', key('dead_workers'), dead)
    elseif #redis.call('XPENDING', key('tasks'), group, '-', '+', 1, dead) == 0 then
      redis.call('ZREM', key('dead_workers'), dead)
      redis.call('XGROUP', 'DELCONSUMER', key('tasks'), group, dead)  -- otherwise the group keeps it forever
    end
  end
  if kind == 'stream' then take_over_pending(nil, false) end
end
for _, member in ipairs(due('delayed', 1000)) do
  redis.call('ZREM', key('delayed'), member)
  add_task(member:sub(17))
end
return {1, redis.call('LLEN', key('suspects')), more}
)lua";

constexpr std::string_view kTakeSuspect = R"lua(
if not redis.call('ZSCORE', key('leases'), worker) then return {false, 0} end
local message = redis.call('LMOVE', key('suspects'), key('alone:' .. worker), 'LEFT', 'RIGHT')
if message then keep(key('alone:' .. worker)) end
return {message, redis.call('LLEN', key('suspects'))}
)lua";

// ARGV[7]: the task, [8]: attempts so far, [9]: the error, [10]: ms until the next attempt.
constexpr std::string_view kRetry = R"lua(
remember(ARGV[7], ARGV[9])
-- The number makes each member unique, even if two tasks are identical.
local number = redis.call('INCR', key('delays'))
keep(key('delays'))
redis.call('ZADD', key('delayed'), now_ms() + tonumber(ARGV[10]),
           string.format('%016d', number) .. with_attempts(ARGV[7], tonumber(ARGV[8])))
keep(key('delayed'))
return 1
)lua";

constexpr std::string_view kBury = R"lua(
bury(ARGV[7], tonumber(ARGV[8]), ARGV[9])
return 1
)lua";

}  // namespace

Redelivery::Redelivery(const RedisSettings& redis, std::string name, std::string incarnation, bool keeps,
                       std::string kind, bool resumed)
    : names_(redis.prefix),
      settings_(redis.delivery),
      name_(std::move(name)),
      worker_(std::move(incarnation)),
      kind_(std::move(kind)),
      lease_ms_(keeps ? redis::milliseconds(redis.delivery.lease_seconds) : "0"),
      lifetime_ms_(redis.shared ? redis::kLifetimeMs : "0"),
      results_ms_(redis::milliseconds(redis.delivery.results_seconds)),
      dead_letters_(std::to_string(redis.delivery.dead_letters)),
      connection_(redis.url),
      beat_(connection_, script_of({kShared, kBeat})),
      take_(connection_, script_of({kShared, kTakeSuspect})),
      retry_(connection_, script_of({kShared, kRetry})),
      bury_(connection_, script_of({kShared, kBury})),
      resumed_(resumed) {
  beat();
  take_reply(*connection_.read(), false);
}

Redelivery::~Redelivery() {
  // A worker that restarts after a failure takes over its own messages and knows that none of them is to blame.
  if (std::uncaught_exceptions() != 0) return;
  try {
    // A lease that expired long ago lets other workers take over the remaining tasks at once.
    connection_.append({"ZADD", names_.leases(), "XX", "0", worker_});
    connection_.flush();
  } catch (const Failure&) {  // the lease will expire anyway
  }
}

std::vector<std::string_view> Redelivery::arguments(std::initializer_list<std::string_view> own) const {
  std::vector<std::string_view> all{names_.prefix(), kind_, worker_, lifetime_ms_, results_ms_, dead_letters_};
  all.insert(all.end(), own);
  return all;
}

void Redelivery::beat() {
  beat_sent_ns_ = now_ns();
  beat_.append(connection_, {names_.tasks()},
               arguments({lease_ms_, first_ ? "1" : "0", std::to_string(settings_.attempts), kGroup, name_,
                          resumed_ ? "1" : "0"}));
  connection_.flush();
  first_ = false;
  beating_ = true;
}

void Redelivery::progress() {
  while (beating_ || asked_for_suspect_) {
    const redis::Reply reply = connection_.try_read();
    if (!reply) break;
    // Replies arrive in order; a heartbeat is never sent after an unanswered request for a suspect.
    take_reply(*reply, !beating_);
  }
  const double since = static_cast<double>(now_ns() - beat_sent_ns_) * 1e-9;
  if (!beating_ && !asked_for_suspect_ &&
      (more_ || since > std::min(kMaxBeatSeconds, settings_.lease_seconds / kBeatsInLease))) {
    beat();
  }
}

void Redelivery::take_reply(const redisReply& reply, bool of_suspect) {
  if (reply.type != REDIS_REPLY_ARRAY || reply.elements != (of_suspect ? 2 : 3)) {
    throw Failure("Redis: a script of the queue returned an unexpected reply");
  }
  suspects_ = static_cast<std::size_t>(reply.element[1]->integer);
  if (of_suspect) {
    asked_for_suspect_ = false;
    if (reply.element[0]->type == REDIS_REPLY_STRING) suspect_ = std::string(redis::text(*reply.element[0]));
    return;
  }
  beating_ = false;
  if (reply.element[0]->integer == 0) {
    throw LeaseLost("worker " + worker_ + ": its lease expired, and other workers now serve what it held");
  }
  confirmed_ns_ = beat_sent_ns_;
  more_ = reply.element[2]->integer != 0;
}

bool Redelivery::alive() const {
  return lease_ms_ == "0" ||
         static_cast<double>(now_ns() - confirmed_ns_) * 1e-9 < settings_.lease_seconds * (1 - 1 / kBeatsInLease);
}

std::optional<std::string> Redelivery::take_suspect() {
  if (!suspect_ && !asked_for_suspect_ && !beating_ && suspects_ != 0 && alive()) {
    take_.append(connection_, {names_.suspects(), names_.alone(worker_)}, arguments({}));
    connection_.flush();
    asked_for_suspect_ = true;
  }
  progress();
  return std::exchange(suspect_, std::nullopt);
}

void Redelivery::retry(redis::Connection& sink, std::string_view task, unsigned attempts,
                       std::string_view error) const {
  const double seconds = settings_.retry_seconds * std::exp2(std::min(attempts, 20u) - 1.0);
  retry_.append(sink, {names_.delayed()},
                arguments({task, std::to_string(attempts), error, redis::milliseconds(seconds)}));
}

void Redelivery::bury(redis::Connection& sink, std::string_view task, unsigned attempts, std::string_view error) const {
  bury_.append(sink, {names_.dead()}, arguments({task, std::to_string(attempts), error}));
}

void Redelivery::forget(redis::Connection& sink, std::uint64_t id) const {
  sink.append({"HDEL", names_.history(), std::string_view(reinterpret_cast<const char*>(&id), sizeof id)});
}

}  // namespace feedrate::redis_queue
