#include "libraries/tensors/store/mirror.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <chrono>
#include <set>

#include "common/error.hpp"
#include "libraries/tensors/socket.hpp"
#include "libraries/tensors/store/reconnect.hpp"

namespace feedrate::tensors {
namespace {

using namespace std::chrono_literals;

// KEYS: the tensor's hash, the set of names. ARGV: its name; then fields and values, or nothing if the name is gone.
// The script is one step, so no reader finds a name in the set without its hash, or an incomplete hash.
constexpr auto kWrite = R"(
redis.call('DEL', KEYS[1])
if #ARGV == 1 then
  redis.call('SREM', KEYS[2], ARGV[1])
else
  redis.call('HSET', KEYS[1], unpack(ARGV, 2))
  redis.call('SADD', KEYS[2], ARGV[1])
end)";
// KEYS: the daemon's hash. ARGV: an instance, a second instance whose claim the first may take over, lifetime of the
// claim in ms; then fields and values. If the first instance has the claim now, returns whether it had the claim
// before; otherwise the owner's instance, socket and node.
constexpr auto kClaim = R"(
local function of_owner(field) return redis.call('HGET', KEYS[1], field) or '' end
local owner = of_owner('instance')
if owner ~= '' and owner ~= ARGV[1] and owner ~= ARGV[2] then
  return {owner, of_owner('socket'), of_owner('node')}
end
redis.call('HSET', KEYS[1], unpack(ARGV, 4))
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return {owner == ARGV[1] and 1 or 0})";
constexpr auto kClaimLives = "10000";  // ms after the last renewal
constexpr auto kRenewal = 1s;          // interval between renewals of the claim
constexpr std::size_t kAtOnce = 512;   // writes in flight

void read_all(redis::Connection& connection) {
  while (connection.unanswered() != 0) connection.read();
}

/// Whether this process can connect to a socket.
bool listens(const std::string& socket) try {
  connect_to(socket);
  return true;
} catch (const std::runtime_error&) {
  return false;
}

}  // namespace

Mirror::Mirror(MirrorOptions options, Daemon& daemon) : options_(std::move(options)), daemon_(daemon) {
  std::string owner;
  try {
    redis::Connection connection(options_.url);
    owner = claim(connection).owner;
  } catch (const Failure& failure) {
    throw BadInput(fmt::format("--redis: no server to work with: {}", failure.what()));
  }
  if (!owner.empty()) {
    throw BadInput("--prefix", options_.prefix,
                   fmt::format("a prefix that no other store uses; this one belongs to {}", owner));
  }
  daemon.observe([this](Table::Change change, const Description& about) { note(change, about); });
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

Mirror::~Mirror() {
  thread_.request_stop();
  thread_.join();
  daemon_.observe({});
  try {
    redis::Connection connection(options_.url);
    if (!claim(connection).owner.empty()) return;  // the entries belong to another store
    script_.emplace(connection, kWrite);
    const redis::Reply names = connection.command({"SMEMBERS", key("tensors")});
    for (std::size_t i = 0; i < names->elements; ++i) {
      drop(connection, std::string(redis::text(*names->element[i])));
    }
    read_all(connection);
    connection.command({"DEL", key("daemon")});
  } catch (const Failure& failure) {
    spdlog::warn("store: could not remove its registry from Redis: {}", failure.what());
  }
}

/// Two stores with one prefix would remove each other's tensors, so a prefix is claimed in one step on the server, and
/// the claim lapses unless it is renewed. A store on this host that no longer listens is dead. A store on another host
/// is known to be dead only once its claim has lapsed.
Mirror::Claim Mirror::claim(redis::Connection& connection) const {
  const Identity& own = daemon_.identity();
  const std::string pid = std::to_string(getpid());
  for (std::string dead;;) {
    const redis::Reply owner = connection.command({"EVAL", kClaim, "1", key("daemon"), own.instance, dead, kClaimLives,
                                                   "instance", own.instance, "socket", own.socket, "device", own.device,
                                                   "node", own.node, "kind", own.kind, "pid", pid});
    if (owner->elements == 1) return {"", owner->element[0]->integer != 0};
    const std::string socket(redis::text(*owner->element[1])), node(redis::text(*owner->element[2]));
    if (node != own.node) {
      return {fmt::format("the store at {} of {}, which is alive or died less than 10 s ago", socket, node), false};
    }
    if (socket != own.socket && listens(socket)) return {fmt::format("the store at {}", socket), false};
    dead = redis::text(*owner->element[0]);
  }
}

bool Mirror::renew(redis::Connection& connection) {
  if (Clock::now() - renewed_ < kRenewal) return true;
  const auto [owner, kept] = claim(connection);
  if (!owner.empty()) {
    throw Failure(fmt::format("lost the prefix '{}': it belongs to {}", options_.prefix, owner));
  }
  renewed_ = Clock::now();
  // A server that was restarted since may have an older state, including an older claim.
  return connection.times_made() == std::exchange(times_made_, connection.times_made()) && kept;
}

void Mirror::note(Table::Change change, const Description& about) {
  const std::lock_guard lock(mutex_);
  if (!connected_) return;  // the complete table is written after connecting
  pending_[about.name] = change == Table::Change::deleted ? std::nullopt : std::optional(about);
  changed_.notify_one();
}

void Mirror::run(const std::stop_token& stop) {
  with_reconnects("store's mirror", options_.url, stop,
                  [&](redis::Connection& connection) { serve(connection, stop); });
}

void Mirror::serve(redis::Connection& connection, const std::stop_token& stop) try {
  times_made_ = 0;
  renewed_ = {};
  for (bool whole = false; !stop.stop_requested();) {
    whole = renew(connection) && whole;
    if (!whole) {
      script_.emplace(connection, kWrite);
      whole = write_all(connection, stop);
      continue;
    }
    decltype(pending_) changes;
    {
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, stop, kRenewal, [&] { return !pending_.empty(); });
      changes.swap(pending_);
    }
    for (const auto& [name, about] : changes) {
      about ? put(connection, *about) : drop(connection, name);
      if (connection.unanswered() >= kAtOnce) read_all(connection);
    }
    read_all(connection);
  }
} catch (...) {
  const std::lock_guard lock(mutex_);
  connected_ = false;
  pending_.clear();
  throw;
}

bool Mirror::write_all(redis::Connection& connection, const std::stop_token& stop) {
  const auto found = daemon_.ask(stop, [this](Table& table) {
    const std::lock_guard lock(mutex_);
    pending_.clear();
    connected_ = true;  // changes are recorded from now on
    return table.list("", ~std::size_t{0});
  });
  if (!found) return false;
  const std::vector<Description>& tensors = *found;
  std::set<std::string> living;
  for (const Description& about : tensors) living.insert(about.name);
  std::size_t dropped = 0;
  const redis::Reply names = connection.command({"SMEMBERS", key("tensors")});
  for (std::size_t i = 0; i < names->elements; ++i) {
    const std::string name(redis::text(*names->element[i]));
    if (living.contains(name)) continue;
    ++dropped;
    drop(connection, name);
    if (connection.unanswered() >= kAtOnce) read_all(connection);
  }
  for (const Description& about : tensors) {
    put(connection, about);
    if (connection.unanswered() < kAtOnce) continue;
    read_all(connection);
    if (!renew(connection)) return false;
  }
  read_all(connection);
  if (dropped != 0) {
    spdlog::warn("store: removed {} tensors of a former daemon from the registry", dropped);
  }
  if (!first_) spdlog::info("store: rewrote its registry, {} tensors", tensors.size());
  first_ = false;
  return true;
}

void Mirror::put(redis::Connection& connection, const Description& about) const {
  const auto& [dtype, shape, strides] = about.layout;
  const std::pair<std::string_view, std::string> fields[] = {
      {"name", about.name},
      {"dtype", std::string(name_of(dtype))},
      {"shape", fmt::format("[{}]", fmt::join(shape, ","))},
      {"strides", fmt::format("[{}]", fmt::join(strides, ","))},
      {"ctime", fmt::format("{:.3f}", 1e-3 * double(about.created_ms))},
      {"node", daemon_.identity().node},
      {"device", daemon_.identity().device},
      {"bytes", std::to_string(about.bytes)},
      {"ipc_handle", handle_of(daemon_.identity(), about)},
      {"offset", std::to_string(about.place.offset)},
      {"generation", std::to_string(about.generation)},
      {"refcount", std::to_string(about.leases)},
      {"state", about.sealed ? "sealed" : "live"},
      {"pinned", about.pinned ? "1" : "0"}};
  std::vector<std::string_view> arguments{about.name};
  for (const auto& [field, value] : fields) arguments.insert(arguments.end(), {field, value});
  script_->append(connection, {key("tensor:" + about.name), key("tensors")}, arguments);
}

void Mirror::drop(redis::Connection& connection, const std::string& name) const {
  script_->append(connection, {key("tensor:" + name), key("tensors")}, {name});
}

}  // namespace feedrate::tensors
