#include "libraries/tensors/store/requests.hpp"

#include <fmt/format.h>

#include "common/error.hpp"
#include "libraries/tensors/errors.hpp"

namespace feedrate::tensors {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxListed = 256;
constexpr std::size_t kMaxListedBytes = std::size_t{48} << 10;

std::string dumped(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

/// The answer with a lease and the memory's descriptors, except the ones that the client already has. A client keeps
/// the descriptors of shared chunks and board parts permanently, and the descriptor of a tensor's own chunk as long as
/// it has a lease on that tensor. The answer is formatted directly as text for speed: a client that has mapped the
/// memory before waits only for this.
Answer granted(Table& table, ClientId id, const Lease& lease) {
  const Description& about = lease.tensor;
  Answer answer;
  std::string& text = answer.written = fmt::format(R"({{"ok":true,"lease":{},"tensor":{})", lease.id, written(about));
  std::string names;
  const auto send = [&](const char* name, int descriptor) {
    names += fmt::format(R"({}"{}")", names.empty() ? "" : ",", name);
    answer.descriptors.push_back(descriptor);
  };
  const Client& client = table.client(id);
  if (const std::uint64_t chunk = about.place.chunk; chunk != 0) {
    const bool shared = table.arena().is_shared(chunk);
    text += fmt::format(R"(,"shared":{},"chunk_bytes":{})", shared, table.arena().chunk(chunk).bytes());
    if (shared ? !client.chunks.contains(chunk) : client.held.at(about.generation) == 1) {
      const Handle handle = table.arena().chunk(chunk).handle();
      if (handle.descriptor >= 0) send("chunk", handle.descriptor);
      if (!handle.bytes.empty()) text += fmt::format(R"(,"handle":"{}")", to_hex(handle.bytes));
      if (shared) table.note_chunk(id, chunk);
    }
  }
  if (const std::uint64_t part = about.slot / kSlotsInPart; !client.parts.contains(part)) {
    send("words", table.board().part(part).handle().descriptor);
    table.note_part(id, part);
  }
  if (!names.empty()) text += fmt::format(R"(,"descriptors":[{}])", names);
  text += '}';
  return answer;
}

/// The answer to a request from the Redis list: it states where the memory can be obtained.
Answer described(const Identity& identity, const Description& about) {
  Json tensor = to_json(about);
  tensor["device"] = identity.device;
  tensor["node"] = identity.node;
  tensor["ipc_handle"] = handle_of(identity, about);
  return {{{"ok", true}, {"tensor", std::move(tensor)}, {"socket", identity.socket}}};
}

/// Formatted directly as text, because a list may be long.
Answer listed(const Table& table, const std::string& after) {
  Answer answer;
  std::string& text = answer.written = R"({"ok":true,"tensors":[)";
  const auto found = table.list(after, kMaxListed);
  std::size_t listed = 0;
  for (const Description& about : found) {
    const std::string one = written(about);
    if (text.size() + one.size() > kMaxListedBytes) break;
    if (listed++ != 0) text += ',';
    text += one;
  }
  const bool more = listed < found.size() || found.size() == kMaxListed;
  text += more ? R"(],"more":true})" : R"(],"more":false})";
  return answer;
}

Answer status(const Table& table, const Identity& identity) {
  const Arena& arena = table.arena();
  return {{{"ok", true},
           {"device", identity.device},
           {"node", identity.node},
           {"kind", identity.kind},
           {"instance", identity.instance},
           {"socket", identity.socket},
           {"memory", arena.limit()},
           {"chunks", arena.chunks()},
           {"chunk_bytes", arena.reserved()},
           {"tensor_bytes", arena.taken()},
           {"tensors", table.tensors()},
           {"staged", table.staged()},
           {"deleted", table.deleted()},
           {"leases", table.leases()},
           {"clients", table.clients()}}};
}

Answer done(const Identity& identity, Table& table, std::optional<ClientId> client, const Request& request) {
  const auto owner = [&](const char* op) {
    if (!client) throw BadInput("op", op, "over a socket connection only: requests from the list get no leases");
    return *client;
  };
  switch (request.op) {
    case Op::create: {
      if (!client && !request.staged) {
        return described(identity, table.create({}, request.name, request.layout, request.create));
      }
      Lease lease = table.stage(owner("create"), request.name, request.layout, request.create);
      if (!request.staged) lease.tensor = table.commit(*client, lease.id);
      return granted(table, *client, lease);
    }
    case Op::get:
      if (!client) return described(identity, table.stat(request.name));
      return granted(table, *client, table.lease(*client, request.name, request.generation));
    case Op::commit:
      return described(identity, table.commit(owner("commit"), request.lease));
    case Op::release:
      table.release(owner("release"), request.lease);
      return {{{"ok", true}}};
    case Op::remove:
      table.remove(request.name, request.generation);
      return {{{"ok", true}}};
    case Op::list:
      return listed(table, request.after);
    case Op::stat:
      return described(identity, table.stat(request.name));
    case Op::pin:
    case Op::unpin:
      return described(identity, table.set_pinned(request.name, request.op == Op::pin));
    case Op::seal:
      return described(identity, table.seal(request.name));
    case Op::evict:
      return {{{"ok", true}, {"evicted_bytes", table.evict(request.bytes == 0 ? ~std::size_t{0} : request.bytes)}}};
    case Op::wait:
      throw BadInput("op", "wait", "over a socket connection only");
    case Op::status:
      break;
  }
  return status(table, identity);
}

}  // namespace

std::string handle_of(const Identity& identity, const Description& about) {
  return fmt::format("{}:{}:{}", identity.kind, identity.instance, about.place.chunk);
}

std::string Answer::text() const { return written.empty() ? dumped(json) : written; }

Answer act(Table& table, const Identity& identity, std::optional<ClientId> client, const Request& request) {
  try {
    if (!request.device.empty() && request.device != identity.device) {
      throw BadInput("device", request.device, identity.device + ", the device of this store");
    }
    if (!request.node.empty() && request.node != identity.node) {
      throw BadInput("node", request.node, identity.node + ", the node of this store");
    }
    return done(identity, table, client, request);
  } catch (const std::exception& error) {
    return {to_json(error)};
  }
}

}  // namespace feedrate::tensors
