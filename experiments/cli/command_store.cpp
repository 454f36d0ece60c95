#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "common/error.hpp"
#include "common/units.hpp"
#include "experiments/cli/commands.hpp"
#include "experiments/cli/npy.hpp"
#include "experiments/cli/options.hpp"
#include "experiments/daemons/store.hpp"
#include "experiments/harness/json.hpp"
#include "experiments/harness/whole_file.hpp"
#include "feedrate/tensors.hpp"
#include "libraries/tensors/protocol.hpp"

namespace feedrate {
namespace {

using tensors::Store;
using tensors::Tensor;

constexpr std::size_t kPieceBytes = std::size_t{16} << 20;  // of a file, at a time

struct ClientOptions {
  std::string socket;
  std::string name, file, dtype;
  std::vector<std::string> names;
  double ttl = 0;
  std::string bytes = "0";
  bool json = false, pinned = false, replace = false, evict = false, off = false;
};

/// Where a user's own daemon listens, when nobody says otherwise; empty where the system gives users no folder that is
/// theirs alone.
std::string standard_socket() {
  const char* folder = std::getenv("XDG_RUNTIME_DIR");
  return folder != nullptr && *folder != '\0' ? std::string(folder) + "/feedrate-store.sock" : "";
}

std::string socket_of(const std::string& asked) {
  std::string path = asked.empty() ? standard_socket() : asked;
  if (path.empty()) throw BadInput("--socket", "", "a path (there is no $XDG_RUNTIME_DIR for a standard one)");
  return path;
}

Store store_of(const ClientOptions& options) {
  try {
    return Store(socket_of(options.socket));
  } catch (const tensors::Unreachable& failure) {
    throw BadInput(fmt::format("--socket: {}", failure.what()));
  }
}

void print(const tensors::Description& about, bool json) {
  if (json) {
    std::cout << tensors::to_json(about).dump() << "\n";
    return;
  }
  fmt::print("{:<32} {:<5} {:<20} {:>12} {:>7}  {}{}\n", about.name, tensors::name_of(about.layout.dtype),
             fmt::format("[{}]", fmt::join(about.layout.shape, ",")), about.bytes, about.leases,
             about.pinned ? "pinned " : "", about.sealed ? "sealed" : "");
}

int list(const ClientOptions& options) {
  const auto all = store_of(options).list();
  if (!options.json) fmt::print("{:<32} {:<5} {:<20} {:>12} {:>7}\n", "name", "dtype", "shape", "bytes", "leases");
  for (const auto& about : all) print(about, options.json);
  return 0;
}

int stat(const ClientOptions& options) {
  print(store_of(options).stat(options.name), true);
  return 0;
}

int status(const ClientOptions& options) {
  std::cout << Json::parse(store_of(options).status()).dump(2) << "\n";
  return 0;
}

/// Writes the elements row by row, whatever the tensor's strides.
void write_elements(const Tensor& tensor, std::ostream& file) {
  const auto& [dtype, shape, strides] = tensor.layout();
  const auto write = [&](std::span<const std::byte> bytes) {
    file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  };
  std::vector<std::byte> piece(strides.empty() ? std::min(tensor.bytes(), kPieceBytes) : tensor.bytes());
  for (std::size_t at = 0; at < tensor.bytes(); at += piece.size()) {
    const auto part = std::span(piece).first(std::min(piece.size(), tensor.bytes() - at));
    tensor.read(part, at);
    if (strides.empty()) write(part);
  }
  if (strides.empty() || tensor.bytes() == 0) return;
  const std::size_t size = tensors::size_of(dtype);
  std::vector<std::int64_t> at(shape.size(), 0);
  while (true) {
    std::int64_t element = 0;
    for (std::size_t i = 0; i < at.size(); ++i) element += at[i] * strides[i];
    write(std::span(piece).subspan(static_cast<std::size_t>(element) * size, size));
    std::size_t i = at.size();
    while (i != 0 && ++at[i - 1] == shape[i - 1]) at[--i] = 0;
    if (i == 0) return;
  }
}

int get(const ClientOptions& options) {
  Store store = store_of(options);
  const Tensor tensor = store.get(options.name);
  try {
    WholeFile file(options.file);
    file.stream() << npy_header(tensor.layout().dtype, tensor.layout().shape);
    write_elements(tensor, file.stream());
    file.commit();
  } catch (const std::system_error& error) {
    throw BadInput("FILE", options.file, fmt::format("a path that can be written ({})", reason_of(error)));
  }
  return 0;
}

int put(const ClientOptions& options) {
  std::ifstream file(options.file, std::ios::binary);
  if (!file) throw BadInput("FILE", options.file, "a file that can be read");
  const NpyHeader header = read_npy_header(file, options.dtype);
  const std::size_t bytes = tensors::bytes_of(header.layout);
  if (std::error_code none; std::filesystem::is_regular_file(options.file, none)) {  // of a pipe nobody knows
    const std::size_t left = std::filesystem::file_size(options.file) - header.data_at;
    if (left < bytes) {
      throw BadInput("FILE", options.file, fmt::format("{} bytes of elements; it has {}", bytes, left));
    }
  }
  Store store = store_of(options);
  tensors::CreateOptions how{.pinned = options.pinned, .evict = options.evict, .replace = options.replace};
  if (options.ttl > 0) how.ttl_seconds = options.ttl;
  Tensor tensor = store.stage(options.name, header.layout, how);
  std::vector<std::byte> piece(std::min(bytes, kPieceBytes));
  for (std::size_t at = 0; at < bytes; at += piece.size()) {
    const auto part = std::span(piece).first(std::min(piece.size(), bytes - at));
    if (!file.read(reinterpret_cast<char*>(part.data()), static_cast<std::streamsize>(part.size()))) {
      throw Failure(fmt::format("{} can't be read to its end", options.file));
    }
    tensor.write(part, at);
  }
  tensor.publish();
  tensor.commit();
  return 0;
}

int remove(const ClientOptions& options) {
  Store store = store_of(options);
  for (const std::string& name : options.names) store.remove(name);
  return 0;
}

int pin(const ClientOptions& options) {
  store_of(options).pin(options.name, !options.off);
  return 0;
}

int collect(const ClientOptions& options) {
  const std::uint64_t bytes = parse_count("--bytes", options.bytes);
  fmt::print("{} bytes freed\n", store_of(options).evict(bytes));
  return 0;
}

void add_service(CLI::App& app, StoreServiceOptions& options) {
  add_option(app, "socket", options.socket, "where clients connect; default: $XDG_RUNTIME_DIR/feedrate-store.sock");
  add_option(app, "group", options.group, "a group whose members may connect, beside the store's user and root");
  add_option(app, "device", options.device, "whose memory it is: cpu, cuda:N, or a GPU's UUID");
  add_option(app, "share", options.share,
             "how a GPU's memory is shared: vmm, pool, legacy; auto: whichever is made and mapped fastest here");
  add_option(app, "memory", options.memory, "bytes that the store may have");
  add_option(app, "quota", options.quota, "bytes of tensors that one client may have created; 0: all");
  add_option(app, "most-tensors", options.most_tensors, "tensors")
      ->check(CLI::Range(std::size_t{1}, std::size_t{1} << 32));
  add_option(app, "most-leases", options.most_leases, "leases of a client")
      ->check(CLI::Range(std::size_t{1}, std::size_t{1} << 32));
  add_option(app, "most-connections", options.most_connections, "connections")
      ->check(CLI::Range(std::size_t{1}, std::size_t{1} << 20));
  add_option(app, "redis", options.redis,
             "redis://… or unix:///…: a server that mirrors what there is; none: no mirror");
  add_option(app, "prefix", options.prefix,
             "of the mirror's keys, one store's alone; default: feedrate:store:HOST:DEVICE");
  add_option(app, "list", options.list, "a list on that server where requests come; empty: none are taken");
  add_option(app, "metrics", options.metrics,
             "[HOST:]PORT: serve /metrics for Prometheus and /healthz there; a port alone listens on every interface");
  add_option(app, "log", options.log, "how its log on stderr is written: text or json")
      ->check(CLI::IsMember({"text", "json"}));
  add_option(
      app, "parent", options.parent,
      "the process that starts the store; when it, or the thread of it that did, ends, so does the store; 0: none");
  app.add_flag("--supervise", options.supervise, "start the store again whenever it dies");
}

/// What a store refuses is the caller's to change: exit code 2, as for other input.
template <class Run>
int refusing(const Run& run) {
  try {
    return run();
  } catch (const tensors::Unreachable&) {
    throw;
  } catch (const tensors::StoreError& refused) {
    throw BadInput(refused.what());
  }
}

}  // namespace

void add_store(CLI::App& app, Action& action, const std::vector<std::string>& arguments) {
  CLI::App* store = app.add_subcommand("store", "tensors by name, shared between processes");
  store->require_subcommand(1);
  auto serve = std::make_shared<StoreServiceOptions>();
  auto options = std::make_shared<ClientOptions>();
  const auto command = [&](const char* name, const char* help, int (*run)(const ClientOptions&)) {
    CLI::App* made = store->add_subcommand(name, help);
    add_option(*made, "socket", options->socket,
               "where the store listens; default: $XDG_RUNTIME_DIR/feedrate-store.sock");
    made->callback(
        [options, &action, run] { action = [options, run] { return refusing([&] { return run(*options); }); }; });
    return made;
  };
  const auto of_one = [&](CLI::App* made) { made->add_option("NAME", options->name, "the tensor's")->required(); };

  CLI::App* served = store->add_subcommand("serve", "own a device's tensors until SIGTERM");
  add_service(*served, *serve);
  served->callback([serve, &action, &arguments] {
    action = [serve, &arguments] {
      serve->socket = socket_of(serve->socket);
      return serve_store(*serve, arguments);
    };
  });
  command("list", "all tensors that have a name", list)->add_flag("--json", options->json, "a JSON object a line");
  of_one(command("stat", "what the store knows of a tensor, as JSON", stat));
  command("status", "what the store says of itself, as JSON", status);
  CLI::App* got = command("get", "write a tensor to a .npy file", get);
  of_one(got);
  got->add_option("FILE", options->file, "where it is written")->required();
  CLI::App* made = command("put", "make a tensor of a .npy file", put);
  of_one(made);
  made->add_option("FILE", options->file, "what is read")->required();
  add_option(*made, "dtype", options->dtype, "what the elements are, where the file does not say: bf16, e4m3, e5m2");
  add_seconds(*made, "ttl", options->ttl, 0, 1e9, "until the name is deleted; 0: never");
  made->add_flag("--pin", options->pinned, "never evicted");
  made->add_flag("--evict", options->evict, "evict others where there is no room");
  made->add_flag("--replace", options->replace, "take the name from the tensor that has it, once the new one is whole");
  CLI::App* removed = command("rm", "delete names; who holds such a tensor keeps it", remove);
  removed->add_option("NAME", options->names, "the tensors'")->required();
  CLI::App* pinned = command("pin", "never evict a tensor", pin);
  of_one(pinned);
  pinned->add_flag("--off", options->off, "evict it again, when it is its turn");
  add_option(*command("gc", "delete what nobody holds and nobody pinned, least recently used first", collect), "bytes",
             options->bytes, "until so many are free of tensors; 0: all of it");
}

}  // namespace feedrate
