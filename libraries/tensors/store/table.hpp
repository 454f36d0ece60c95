#pragma once
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "libraries/tensors/store/arena.hpp"
#include "libraries/tensors/store/board.hpp"
#include "libraries/tensors/tensor.hpp"

namespace feedrate::tensors {

/// A client: a connection of a process.
struct Client {
  std::string name;  ///< for messages: "process 4711 of user 1000"
  std::size_t created_bytes = 0;
  std::unordered_map<std::uint64_t, std::uint64_t> leases = {};  ///< generations by lease
  std::unordered_map<std::uint64_t, std::uint64_t> held = {};    ///< number of leases by generation
  std::unordered_set<std::uint64_t> chunks = {};                 ///< shared chunks that the client maps
  std::unordered_set<std::uint64_t> parts = {};                  ///< parts of the board that the client maps
};
using ClientId = std::uint64_t;

struct Lease {
  std::uint64_t id = 0;
  Description tensor;
};

struct TableLimits {
  std::size_t tensors = 1'000'000;
  std::size_t leases_of_client = 1'000'000;
  std::size_t bytes_of_client = ~std::size_t{0};  ///< bytes of tensors that a client created and that are not freed yet
};

/// The state of a store and the rules of a tensor's life. The table uses no socket and no server; only one thread may
/// use it.
///
/// A name refers to at most one tensor. A deleted tensor no longer has a name; its memory is freed with its last lease.
class Table {
 public:
  enum class Change { created, changed, deleted };
  using OnChange = std::function<void(Change, const Description&)>;
  using Clock = std::function<std::uint64_t()>;  ///< Unix time in ms

  Table(ChunkMemory& memory, std::size_t bytes, TableLimits limits, OnChange on_change, Clock clock);

  ClientId join(std::string name);
  /// Removes a client and ends its leases. Its process must no longer use the memory.
  void leave(ClientId);
  const Client& client(ClientId id) const { return clients_.at(id); }
  /// Notes that the client was sent a shared chunk or a part of the board, which it keeps.
  void note_chunk(ClientId id, std::uint64_t chunk) { clients_.at(id).chunks.insert(chunk); }
  void note_part(ClientId id, std::uint64_t part) { clients_.at(id).parts.insert(part); }

  /// Creates a tensor filled with zeros. Throws AlreadyExists, OutOfMemory, LimitReached, BadInput.
  Description create(std::optional<ClientId>, const std::string& name, const Layout&, const CreateOptions&);
  /// Creates a tensor filled with zeros that does not have its name yet. Only leases keep it alive. Throws the same
  /// errors as create(), but AlreadyExists only without `replace`. Eviction to make room for it never evicts the tensor
  /// that has the name.
  Lease stage(ClientId, const std::string& name, const Layout&, const CreateOptions&);
  /// Gives the staged tensor of this lease its name. With `replace`, the same step deletes the tensor that had it.
  /// Throws NotFound if the client has no such lease, BadInput if its tensor is not staged, AlreadyExists.
  Description commit(ClientId, std::uint64_t lease);
  /// Leases the tensor that has the name, and the generation if one is given. Throws NotFound, LimitReached.
  Lease lease(ClientId, const std::string& name, std::uint64_t generation = 0);
  /// Throws NotFound if the client has no such lease.
  void release(ClientId, std::uint64_t lease);
  /// Throws NotFound.
  void remove(const std::string& name, std::uint64_t generation = 0);
  Description stat(const std::string& name) const;
  Description set_pinned(const std::string& name, bool pinned);
  Description seal(const std::string& name);
  /// Tensors whose names follow `after`, in byte order of the names.
  std::vector<Description> list(const std::string& after, std::size_t most) const;

  /// Deletes tensors that are neither leased nor pinned, least recently used first, until `bytes` are free or no such
  /// tensor is left; returns the number of bytes freed.
  std::size_t evict(std::size_t bytes) { return evict(bytes, ""); }
  /// Deletes the names whose time to live has passed. Returns the next expiry time.
  std::optional<std::uint64_t> expire();

  const Arena& arena() const { return arena_; }
  const Board& board() const { return board_; }
  std::size_t tensors() const { return names_.size(); }
  std::size_t staged() const { return staged_; }
  std::size_t deleted() const { return tensors_.size() - names_.size() - staged_; }  ///< with leases left
  std::size_t clients() const { return clients_.size(); }
  std::uint64_t leases() const { return leases_; }

 private:
  enum class Life { staged, named, deleted };
  struct Tensor {
    Description about;
    std::uint64_t used = 0;  ///< sequence number of the last use, for eviction
    ClientId creator = 0;    ///< may have disconnected; 0: not created by a connection
    CreateOptions options = {};
    Life life = Life::staged;
  };
  Tensor& named(const std::string& name, std::uint64_t generation = 0);
  const Tensor& named(const std::string& name, std::uint64_t generation = 0) const;
  Tensor& make(std::optional<ClientId>, const std::string& name, const Layout&, const CreateOptions&);
  void give_name(Tensor&);
  void check_free(const std::string& name) const;
  void check_lease_limit(const Client&) const;
  Lease lease(ClientId, Tensor&);
  Place take(std::optional<ClientId>, const std::string& name, std::size_t bytes, const CreateOptions&);
  void remove(Tensor&);
  void mark_deleted(Tensor&);
  std::size_t evict(std::size_t bytes, const std::string& spared);
  void report(Change change, const Tensor&);
  void drop_lease(std::uint64_t generation);
  void free_if_unused(Tensor&);
  static bool is_idle(const Tensor& tensor) {
    return tensor.life == Life::named && tensor.about.leases == 0 && !tensor.about.pinned;
  }
  std::size_t evictable(const std::string& spared) const;
  std::string largest_holders() const;
  std::string holders_of(std::uint64_t generation) const;

  OnChange on_change_;
  Clock clock_;
  TableLimits limits_;
  Board board_;
  std::map<ClientId, Client> clients_;
  Arena arena_;
  std::unordered_map<std::uint64_t, Tensor> tensors_;  // keyed by generation
  std::map<std::string, std::uint64_t> names_;
  std::set<std::pair<std::uint64_t, std::uint64_t>> expiries_;  // ms, generation
  std::uint64_t last_generation_ = 0, last_client_ = 0, last_lease_ = 0, uses_ = 0, leases_ = 0;
  std::size_t staged_ = 0;
};

}  // namespace feedrate::tensors
