#include "libraries/tensors/store/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "common/error.hpp"
#include "libraries/tensors/errors.hpp"

namespace feedrate::tensors {
namespace {

std::uint64_t generation_of(const Client& client, std::uint64_t lease) {
  const auto found = client.leases.find(lease);
  if (found == client.leases.end()) throw NotFound(fmt::format("{} has no lease {}", client.name, lease));
  return found->second;
}

}  // namespace

Table::Table(ChunkMemory& memory, std::size_t bytes, TableLimits limits, OnChange on_change, Clock clock)
    : on_change_(std::move(on_change)),
      clock_(std::move(clock)),
      limits_(limits),
      arena_(memory, bytes, [this](std::uint64_t chunk) {
        return std::ranges::any_of(clients_, [&](const auto& one) { return one.second.chunks.contains(chunk); });
      }) {}

ClientId Table::join(std::string name) {
  clients_.emplace(++last_client_, Client{std::move(name)});
  return last_client_;
}

void Table::leave(ClientId id) {
  const auto found = clients_.find(id);
  const auto leases = std::move(found->second.leases);
  clients_.erase(found);  // first, so that chunks that only this client mapped are freed with its leases
  for (const auto& [lease, generation] : leases) drop_lease(generation);
  arena_.trim();
}

Description Table::create(std::optional<ClientId> creator, const std::string& name, const Layout& layout,
                          const CreateOptions& options) {
  if (options.replace) throw BadInput("replace", "true", "false, unless the tensor is staged");
  check_free(name);
  Tensor& made = make(creator, name, layout, options);
  give_name(made);
  return made.about;
}

Lease Table::stage(ClientId creator, const std::string& name, const Layout& layout, const CreateOptions& options) {
  if (!options.replace) check_free(name);
  check_lease_limit(clients_.at(creator));
  Tensor& made = make(creator, name, layout, options);
  ++staged_;
  return lease(creator, made);
}

Description Table::commit(ClientId id, std::uint64_t lease) {
  Tensor& tensor = tensors_.at(generation_of(clients_.at(id), lease));
  if (tensor.life != Life::staged) throw BadInput("lease", std::to_string(lease), "the lease of a staged tensor");
  if (!tensor.options.replace) check_free(tensor.about.name);
  // The observer sees one change, `created`, because the name refers to a tensor at all times.
  if (const auto old = names_.find(tensor.about.name); old != names_.end()) mark_deleted(tensors_.at(old->second));
  --staged_;
  give_name(tensor);
  return tensor.about;
}

void Table::check_free(const std::string& name) const {
  const auto found = names_.find(name);
  if (found == names_.end()) return;
  throw AlreadyExists(fmt::format("tensor '{}' exists (generation {})", name, found->second));
}

Table::Tensor& Table::make(std::optional<ClientId> creator, const std::string& name, const Layout& layout,
                           const CreateOptions& options) {
  check_name(name);
  const std::size_t bytes = bytes_of(layout);
  check_ttl(options);
  if (tensors_.size() >= limits_.tensors) {
    throw LimitReached(fmt::format("the store has {} tensors, which is its limit", tensors_.size()));
  }
  const std::uint64_t generation = ++last_generation_;
  Description about{.name = name, .generation = generation, .layout = layout, .bytes = bytes};
  about.slot = board_.take(generation);
  try {
    about.place = take(creator, name, bytes, options);
  } catch (...) {
    board_.give_back(about.slot);
    throw;
  }
  about.pinned = options.pinned;
  about.created_ms = clock_();
  if (creator) clients_.at(*creator).created_bytes += about.place.bytes;
  return tensors_.emplace(generation, Tensor{about, ++uses_, creator.value_or(0), options}).first->second;
}

void Table::give_name(Tensor& tensor) {
  Description& about = tensor.about;
  if (tensor.options.ttl_seconds) {
    about.expires_ms = clock_() + static_cast<std::uint64_t>(std::ceil(*tensor.options.ttl_seconds * 1000));
    expiries_.emplace(about.expires_ms, about.generation);
  }
  names_[about.name] = about.generation;
  tensor.life = Life::named;
  report(Change::created, tensor);
}

void Table::report(Change change, const Tensor& tensor) {
  if (tensor.life == Life::named) on_change_(change, tensor.about);
}

Place Table::take(std::optional<ClientId> creator, const std::string& name, std::size_t bytes,
                  const CreateOptions& options) {
  if (creator) {
    const Client& client = clients_.at(*creator);
    if (bytes > limits_.bytes_of_client || client.created_bytes > limits_.bytes_of_client - bytes) {
      throw OutOfMemory(fmt::format("{} has created tensors of {} bytes; {} more would be above its quota of {}",
                                    client.name, client.created_bytes, bytes, limits_.bytes_of_client));
    }
  }
  // Because of fragmentation, the first eviction may free too little.
  for (std::size_t more = bytes;; more *= 2) {
    try {
      return arena_.take(bytes);
    } catch (const OutOfMemory& failure) {
      // Evict only if free and idle memory together are enough.
      if (options.evict && evictable(name) + arena_.limit() - arena_.taken() >= bytes && evict(more, name) != 0)
        continue;
      throw OutOfMemory(fmt::format("{}; {}", failure.what(), largest_holders()));
    }
  }
}

Lease Table::lease(ClientId id, const std::string& name, std::uint64_t generation) {
  Tensor& tensor = named(name, generation);
  check_lease_limit(clients_.at(id));
  return lease(id, tensor);
}

void Table::check_lease_limit(const Client& client) const {
  if (client.leases.size() < limits_.leases_of_client) return;
  throw LimitReached(fmt::format("{} has {} leases, which is the limit", client.name, client.leases.size()));
}

Lease Table::lease(ClientId id, Tensor& tensor) {
  Client& client = clients_.at(id);
  client.leases.emplace(++last_lease_, tensor.about.generation);
  ++client.held[tensor.about.generation];
  ++leases_;
  ++tensor.about.leases;
  tensor.used = ++uses_;
  report(Change::changed, tensor);
  return {last_lease_, tensor.about};
}

void Table::release(ClientId id, std::uint64_t lease) {
  Client& client = clients_.at(id);
  const std::uint64_t generation = generation_of(client, lease);
  client.leases.erase(lease);
  if (--client.held.at(generation) == 0) client.held.erase(generation);
  drop_lease(generation);
}

void Table::drop_lease(std::uint64_t generation) {
  Tensor& tensor = tensors_.at(generation);
  --leases_;
  --tensor.about.leases;
  tensor.used = ++uses_;
  report(Change::changed, tensor);
  free_if_unused(tensor);
}

void Table::remove(const std::string& name, std::uint64_t generation) { remove(named(name, generation)); }

void Table::remove(Tensor& tensor) {
  report(Change::deleted, tensor);
  mark_deleted(tensor);
}

void Table::mark_deleted(Tensor& tensor) {
  tensor.life = Life::deleted;
  board_.mark_deleted(tensor.about.slot);
  names_.erase(tensor.about.name);
  if (tensor.about.expires_ms != 0) expiries_.erase({tensor.about.expires_ms, tensor.about.generation});
  free_if_unused(tensor);
}

void Table::free_if_unused(Tensor& tensor) {
  if (tensor.life == Life::named || tensor.about.leases != 0) return;
  staged_ -= tensor.life == Life::staged ? 1 : 0;
  if (const auto creator = clients_.find(tensor.creator); creator != clients_.end()) {
    creator->second.created_bytes -= tensor.about.place.bytes;
  }
  arena_.give_back(tensor.about.place);
  board_.give_back(tensor.about.slot);
  tensors_.erase(tensor.about.generation);
}

std::size_t Table::evictable(const std::string& spared) const {
  std::size_t bytes = 0;
  for (const auto& [generation, tensor] : tensors_) {
    bytes += is_idle(tensor) && tensor.about.name != spared ? tensor.about.place.bytes : 0;
  }
  return bytes;
}

Description Table::stat(const std::string& name) const { return named(name).about; }

Description Table::set_pinned(const std::string& name, bool pinned) {
  Tensor& tensor = named(name);
  tensor.about.pinned = pinned;
  on_change_(Change::changed, tensor.about);
  return tensor.about;
}

Description Table::seal(const std::string& name) {
  Tensor& tensor = named(name);
  tensor.about.sealed = true;
  board_.words(tensor.about.slot).sealed.store(1, std::memory_order_release);
  on_change_(Change::changed, tensor.about);
  return tensor.about;
}

std::vector<Description> Table::list(const std::string& after, std::size_t most) const {
  std::vector<Description> found;
  for (auto at = names_.upper_bound(after); at != names_.end() && found.size() < most; ++at) {
    found.push_back(tensors_.at(at->second).about);
  }
  return found;
}

std::size_t Table::evict(std::size_t bytes, const std::string& spared) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> idle;  // last use, generation
  for (const auto& [generation, tensor] : tensors_) {
    if (is_idle(tensor) && tensor.about.name != spared) idle.emplace_back(tensor.used, generation);
  }
  std::ranges::sort(idle);
  std::size_t evicted = 0;
  for (const auto& [used, generation] : idle) {
    if (evicted >= bytes) break;
    Tensor& tensor = tensors_.at(generation);
    evicted += tensor.about.place.bytes;
    remove(tensor);
  }
  return evicted;
}

std::optional<std::uint64_t> Table::expire() {
  const std::uint64_t now = clock_();
  while (!expiries_.empty() && expiries_.begin()->first <= now) remove(tensors_.at(expiries_.begin()->second));
  if (expiries_.empty()) return std::nullopt;
  return expiries_.begin()->first;
}

Table::Tensor& Table::named(const std::string& name, std::uint64_t generation) {
  return const_cast<Tensor&>(std::as_const(*this).named(name, generation));
}

const Table::Tensor& Table::named(const std::string& name, std::uint64_t generation) const {
  const auto found = names_.find(name);
  if (found == names_.end()) throw NotFound(fmt::format("no tensor '{}'", name));
  if (generation != 0 && generation != found->second) {
    throw NotFound(fmt::format("tensor '{}' of generation {} was deleted; the name now has generation {}", name,
                               generation, found->second));
  }
  return tensors_.at(found->second);
}

std::string Table::largest_holders() const {
  constexpr std::size_t kNamed = 3;
  std::vector<const Tensor*> all;
  std::size_t held = 0, pinned = 0, idle = 0, deleted = 0;
  for (const auto& [generation, tensor] : tensors_) {
    all.push_back(&tensor);
    (tensor.life == Life::deleted ? deleted
     : tensor.about.leases != 0   ? held
     : tensor.about.pinned        ? pinned
                                  : idle) += tensor.about.place.bytes;
  }
  const auto shown = all.begin() + static_cast<std::ptrdiff_t>(std::min(kNamed, all.size()));
  std::ranges::partial_sort(all, shown, std::ranges::greater{}, [](const Tensor* one) {
    return std::pair(one->about.leases != 0, one->about.place.bytes);  // tensors that can be evicted are last
  });
  std::string text = fmt::format(
      "bytes of leased tensors: {}, deleted but still leased: {}, pinned: {}, idle (can be evicted): {}; the "
      "largest:",
      held, deleted, pinned, idle);
  for (auto one = all.begin(); one != shown; ++one) {
    const Description& about = (*one)->about;
    text += fmt::format(" '{}' {} bytes ({} leases{})", about.name, about.place.bytes, about.leases,
                        about.leases == 0 ? "" : ": " + holders_of(about.generation));
  }
  return text;
}

std::string Table::holders_of(std::uint64_t generation) const {
  constexpr std::size_t kNamed = 8;
  std::string text;
  std::size_t holders = 0;
  for (const auto& [id, client] : clients_) {
    if (!client.held.contains(generation)) continue;
    if (++holders <= kNamed) text += (text.empty() ? "" : ", ") + client.name;
  }
  return holders <= kNamed ? text : fmt::format("{} and {} more", text, holders - kNamed);
}

}  // namespace feedrate::tensors
