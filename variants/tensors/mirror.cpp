#include "variants/tensors/mirror.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <chrono>
#include <set>

#include "common/error.hpp"
#include "variants/tensors/reconnect.hpp"
#include "variants/tensors/socket.hpp"

namespace feedrate::tensors {
namespace {

using namespace std::chrono_literals;

// KEYS: the tensor's hash, the set of names. ARGV: its name; then fields and values, or none where the name is gone.
// One step: no reader finds a name in the set without its hash, or half a hash.
constexpr auto kWrite = R"(
redis.call('DEL', KEYS[1])
if #ARGV == 1 then
  redis.call('SREM', KEYS[2], ARGV[1])
else
  redis.call('HSET', KEYS[1], unpack(ARGV, 2))
  redis.call('SADD', KEYS[2], ARGV[1])
end)";
constexpr std::size_t kAtOnce = 512;  // writes under way

void read_all(redis::Connection& connection) {
  while (connection.unanswered() != 0) connection.read();
}

/// Whether this process can connect there.
bool listens(const std::string& socket) try {
  connect_to(socket);
  return true;
} catch (const std::runtime_error&) {
  return false;
}

}  // namespace

Mirror::Mirror(MirrorOptions options, Daemon& daemon) : options_(std::move(options)), daemon_(daemon) {
  std::string other;  // the socket of whoever wrote there last
  try {
    redis::Connection connection(options_.url);
    const redis::Reply told = connection.command({"HGET", key("daemon"), "socket"});
    if (told->type == REDIS_REPLY_STRING) other = redis::text(*told);
  } catch (const Failure& failure) {
    throw BadInput(fmt::format("--redis: no server to work with: {}", failure.what()));
  }
  // Each of the two would remove the other's tensors from there.
  if (!other.empty() && other != daemon.identity().socket && listens(other)) {
    throw BadInput("--prefix", options_.prefix,
                   fmt::format("a prefix that no other store uses; the store at {} uses it", other));
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
    const redis::Script script(connection, kWrite);
    const redis::Reply names = connection.command({"SMEMBERS", key("tensors")});
    for (std::size_t i = 0; i < names->elements; ++i) {
      drop(connection, script, std::string(redis::text(*names->element[i])));
    }
    read_all(connection);
    connection.command({"DEL", key("daemon")});
  } catch (const Failure& failure) {
    spdlog::warn("store: its registry stays behind: {}", failure.what());
  }
}

void Mirror::note(Table::Change change, const Description& about) {
  const std::lock_guard lock(mutex_);
  if (!connected_) return;  // all is written once it is
  pending_[about.name] = change == Table::Change::deleted ? std::nullopt : std::optional(about);
  changed_.notify_one();
}

void Mirror::run(const std::stop_token& stop) {
  with_reconnects("store's mirror", options_.url, stop,
                  [&](redis::Connection& connection) { serve(connection, stop); });
}

void Mirror::serve(redis::Connection& connection, const std::stop_token& stop) try {
  const redis::Script script(connection, kWrite);
  write_all(connection, script, stop);
  while (!stop.stop_requested()) {
    decltype(pending_) changes;
    {
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, stop, 1s, [&] { return !pending_.empty(); });
      changes.swap(pending_);
    }
    if (changes.empty()) connection.command({"PING"});
    for (const auto& [name, about] : changes) {
      about ? put(connection, script, *about) : drop(connection, script, name);
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

void Mirror::write_all(redis::Connection& connection, const redis::Script& script, const std::stop_token& stop) {
  auto told = std::make_shared<std::promise<std::vector<Description>>>();
  auto all = told->get_future();
  daemon_.post([this, told](Table& table) {
    const std::lock_guard lock(mutex_);
    pending_.clear();
    connected_ = true;  // from here on changes count
    told->set_value(table.list("", ~std::size_t{0}));
  });
  while (all.wait_for(50ms) != std::future_status::ready) {
    if (stop.stop_requested()) return;
  }
  const std::vector<Description> tensors = all.get();
  std::set<std::string> living;
  for (const Description& about : tensors) living.insert(about.name);
  std::size_t dropped = 0;
  const redis::Reply names = connection.command({"SMEMBERS", key("tensors")});
  for (std::size_t i = 0; i < names->elements; ++i) {
    const std::string name(redis::text(*names->element[i]));
    if (living.contains(name)) continue;
    ++dropped;
    drop(connection, script, name);
    if (connection.unanswered() >= kAtOnce) read_all(connection);
  }
  for (const Description& about : tensors) {
    put(connection, script, about);
    if (connection.unanswered() >= kAtOnce) read_all(connection);
  }
  read_all(connection);
  const Identity& identity = daemon_.identity();
  connection.command({"HSET", key("daemon"), "instance", identity.instance, "socket", identity.socket, "device",
                      identity.device, "node", identity.node, "kind", identity.kind, "pid", std::to_string(getpid())});
  if (dropped != 0) {
    spdlog::warn("store: {} tensors of a former daemon are gone with it; removed from the registry", dropped);
  }
  if (!first_) spdlog::info("store: its registry is written again, {} tensors", tensors.size());
  first_ = false;
}

void Mirror::put(redis::Connection& connection, const redis::Script& script, const Description& about) const {
  const auto number = [](auto value) { return std::to_string(value); };
  const std::string generation = number(about.generation), bytes = number(about.bytes), leases = number(about.leases),
                    offset = number(about.place.offset),
                    created = fmt::format("{:.3f}", 1e-3 * double(about.created_ms)),
                    shape = fmt::format("[{}]", fmt::join(about.layout.shape, ",")),
                    strides = fmt::format("[{}]", fmt::join(about.layout.strides, ",")),
                    handle = handle_of(daemon_.identity(), about);
  script.append(connection, {key("tensor:" + about.name), key("tensors")},
                {about.name,
                 "name",
                 about.name,
                 "dtype",
                 name_of(about.layout.dtype),
                 "shape",
                 shape,
                 "strides",
                 strides,
                 "ctime",
                 created,
                 "node",
                 daemon_.identity().node,
                 "device",
                 daemon_.identity().device,
                 "bytes",
                 bytes,
                 "ipc_handle",
                 handle,
                 "offset",
                 offset,
                 "generation",
                 generation,
                 "refcount",
                 leases,
                 "state",
                 about.sealed ? "sealed" : "live",
                 "pinned",
                 about.pinned ? "1" : "0"});
}

void Mirror::drop(redis::Connection& connection, const redis::Script& script, const std::string& name) const {
  script.append(connection, {key("tensor:" + name), key("tensors")}, {name});
}

}  // namespace feedrate::tensors
