#include "experiments/daemons/store_source.hpp"

#include <chrono>
#include <future>
#include <memory>
#include <optional>

namespace feedrate {
namespace {

struct Figures {
  double limit, chunks, tensor_bytes, tensors, deleted, leases, clients;
};

/// Figures from the daemon's thread; empty if the thread is stuck or has ended.
std::optional<Figures> figures_of(tensors::Daemon& daemon) {
  const auto told = std::make_shared<std::promise<Figures>>();
  auto figures = told->get_future();
  daemon.post([told](const tensors::Table& table) {
    const auto number = [](auto value) { return static_cast<double>(value); };
    const tensors::Arena& arena = table.arena();
    told->set_value({number(arena.limit()), number(arena.reserved()), number(arena.taken()), number(table.tensors()),
                     number(table.deleted()), number(table.leases()), number(table.clients())});
  });
  if (figures.wait_for(std::chrono::seconds(1)) != std::future_status::ready) return std::nullopt;
  return figures.get();
}

}  // namespace

void StoreSource::collect(const Add& add) {
  const auto found = figures_of(daemon_);
  if (!found) return;
  const auto tell = [&](const char* name, const char* help, double value) { add({kFeedrateGauge, name, help, value}); };
  tell("feedrate_store_memory_bytes", "Limit of the store's memory in bytes.", found->limit);
  tell("feedrate_store_chunk_bytes", "Bytes of device memory that the store has allocated.", found->chunks);
  tell("feedrate_store_tensor_bytes", "Bytes of tensors.", found->tensor_bytes);
  tell("feedrate_store_tensors", "Tensors that have a name.", found->tensors);
  tell("feedrate_store_deleted_tensors", "Tensors without a name that a process still holds.", found->deleted);
  tell("feedrate_store_leases", "Leases held by all processes.", found->leases);
  tell("feedrate_store_clients", "Connections.", found->clients);
}

std::string StoreSource::why_unhealthy() const {
  return figures_of(daemon_) ? "" : "the store's thread does not respond";
}

}  // namespace feedrate
