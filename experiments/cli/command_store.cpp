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
#include "experiments/harness/atomic_file.hpp"
#include "experiments/harness/json.hpp"
#include "feedrate/tensors.hpp"
#include "libraries/tensors/protocol.hpp"

namespace feedrate {
namespace {

using tensors::Store;
using tensors::Tensor;

constexpr std::size_t kPieceBytes = std::size_t{16} << 20;  // bytes of a file that are read or written at a time

struct ClientOptions {
  std::string socket;
  std::string name, file, dtype;
  std::vector<std::string> names;
  double ttl = 0;
  std::string bytes = "0";
  bool json = false, pinned = false, replace = false, evict = false, off = false;
};

/// Default socket of a user's store; empty if the system provides no private folder for the user.
std::string standard_socket() {
  const char* folder = std::getenv("XDG_RUNTIME_DIR");
  return folder != nullptr && *folder != '\0' ? std::string(folder) + "/feedrate-store.sock" : "";
}

std::string socket_of(const std::string& asked) {
  std::string path = asked.empty() ? standard_socket() : asked;
  if (path.empty()) throw BadInput("--socket", "", "a path (there is no default because $XDG_RUNTIME_DIR is not set)");
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
    AtomicFile file(options.file);
    file.stream() << npy_header(tensor.layout().dtype, tensor.layout().shape);
    write_elements(tensor, file.stream());
    file.commit();
  } catch (const std::system_error& error) {
    throw BadInput("FILE", options.file, fmt::format("a writable path ({})", reason_of(error)));
  }
  return 0;
}

int put(const ClientOptions& options) {
  std::ifstream file(options.file, std::ios::binary);
  if (!file) throw BadInput("FILE", options.file, "a readable file");
  const NpyHeader header = read_npy_header(file, options.dtype);
  const std::size_t bytes = tensors::bytes_of(header.layout);
  if (std::error_code none; std::filesystem::is_regular_file(options.file, none)) {  // the size of a pipe is unknown
    const std::size_t left = std::filesystem::file_size(options.file) - header.data_at;
    if (left < bytes) {
      throw BadInput("FILE", options.file, fmt::format("a file with {} bytes of elements; it has {}", bytes, left));
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
      throw Failure(fmt::format("{} ended early or could not be read", options.file));
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
  add_option(app, "socket", options.socket,
             "socket that clients connect to; default: $XDG_RUNTIME_DIR/feedrate-store.sock");
  add_option(app, "group", options.group, "group whose members may connect, in addition to the store's user and root");
  add_option(app, "device", options.device, "device whose memory the store owns: cpu, cuda:N, or a GPU's UUID");
  add_option(app, "share", options.share,
             "method for sharing GPU memory: vmm, pool, legacy; auto: the fastest to create and map on this machine");
  add_option(app, "memory", options.memory, "maximum bytes of memory that the store allocates");
  add_option(app, "quota", options.quota, "maximum bytes of tensors created by one client; 0: no limit per client");
  add_option(app, "most-tensors", options.max_tensors, "maximum number of tensors")
      ->check(CLI::Range(std::size_t{1}, std::size_t{1} << 32));
  add_option(app, "most-leases", options.max_leases, "maximum number of leases per client")
      ->check(CLI::Range(std::size_t{1}, std::size_t{1} << 32));
  add_option(app, "most-connections", options.max_connections, "maximum number of connections")
      ->check(CLI::Range(std::size_t{1}, std::size_t{1} << 20));
  add_option(app, "redis", options.redis,
             "redis://… or unix:///…: server that mirrors the store's contents; none: no mirror");
  add_option(app, "prefix", options.prefix,
             "prefix of the mirror's keys, unique to one store; default: feedrate:store:HOST:DEVICE");
  add_option(app, "list", options.list,
             "list on that server from which requests are taken; empty: no requests are taken");
  add_option(app, "metrics", options.metrics,
             "[HOST:]PORT: address that serves /metrics (Prometheus) and /healthz; without HOST, all interfaces");
  add_option(app, "log", options.log, "format of the log on stderr: text or json")
      ->check(CLI::IsMember({"text", "json"}));
  add_option(app, "parent", options.parent,
             "PID of the process that starts the store; the store exits when that process or its starting thread "
             "exits; 0: none");
  app.add_flag("--supervise", options.supervise, "restart the store whenever it dies");
}

/// Turns a rejection by the store into BadInput: exit code 2, as for other invalid input.
template <class Run>
int rejections_as_bad_input(const Run& run) {
  try {
    return run();
  } catch (const tensors::Unreachable&) {
    throw;
  } catch (const tensors::StoreError& rejection) {
    throw BadInput(rejection.what());
  }
}

}  // namespace

void add_store(Program& program) {
  CLI::App* store = program.app.add_subcommand("store", "share named tensors between processes");
  store->require_subcommand(1);
  auto serve = std::make_shared<StoreServiceOptions>();
  auto options = std::make_shared<ClientOptions>();
  const auto command = [&](const char* name, const char* help, int (*run)(const ClientOptions&)) {
    CLI::App* made = store->add_subcommand(name, help);
    add_option(*made, "socket", options->socket, "socket of the store; default: $XDG_RUNTIME_DIR/feedrate-store.sock");
    program.on_choice(*made, [options, run] { return rejections_as_bad_input([&] { return run(*options); }); });
    return made;
  };
  const auto of_one = [&](CLI::App* made) {
    made->add_option("NAME", options->name, "name of the tensor")->required();
  };

  CLI::App* served = store->add_subcommand("serve", "run a store for one device until SIGTERM");
  add_service(*served, *serve);
  program.on_choice(*served, [serve, &program] {
    serve->socket = socket_of(serve->socket);
    return serve_store(*serve, program.arguments);
  });
  command("list", "list all named tensors", list)->add_flag("--json", options->json, "print one JSON object per line");
  of_one(command("stat", "print a tensor's description as JSON", stat));
  command("status", "print the store's status as JSON", status);
  CLI::App* got = command("get", "write a tensor to a .npy file", get);
  of_one(got);
  got->add_option("FILE", options->file, "file to write")->required();
  CLI::App* made = command("put", "create a tensor from a .npy file", put);
  of_one(made);
  made->add_option("FILE", options->file, "file to read")->required();
  add_option(*made, "dtype", options->dtype, "element type if the file does not specify it: bf16, e4m3, e5m2");
  add_seconds(*made, "ttl", options->ttl, 0, 1e9, "time until the name is deleted; 0: never");
  made->add_flag("--pin", options->pinned, "exclude the tensor from eviction");
  made->add_flag("--evict", options->evict, "evict other tensors if memory is full");
  made->add_flag("--replace", options->replace, "replace an existing tensor of this name once the new one is complete");
  CLI::App* removed = command("rm", "delete names; processes with a lease keep the tensor", remove);
  removed->add_option("NAME", options->names, "names of the tensors")->required();
  CLI::App* pinned = command("pin", "exclude a tensor from eviction", pin);
  of_one(pinned);
  pinned->add_flag("--off", options->off, "allow eviction again");
  add_option(*command("gc", "delete tensors that are neither leased nor pinned, least recently used first", collect),
             "bytes", options->bytes, "bytes to free; 0: all");
}

}  // namespace feedrate
