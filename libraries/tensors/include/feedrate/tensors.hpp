#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/export.hpp"
#include "libraries/tensors/errors.hpp"
#include "libraries/tensors/tensor.hpp"
#include "libraries/tensors/words.hpp"

/// Tensors by name, in memory that all processes of a machine share and that outlives its makers. A daemon owns it
/// (`feedrate store serve`); this is the way to it.
///
///     feedrate::tensors::Store store("/run/feedrate/store.sock");
///     auto weights = store.create("weights", {Dtype::f32, {1024, 1024}});
///     fill(weights.data());
///     weights.publish();                                     // others see that it is written
///     // in another process
///     auto weights = store.get("weights");                   // the same memory
///     weights.wait_for(1, std::chrono::seconds(5));
///
/// Errors: those of errors.hpp, which name the tensor; BadInput for what can't be asked; Failure for what broke. All
/// are std::runtime_error.
namespace feedrate::tensors {

/// A lease on a tensor: while one lives, its memory stays, whoever deletes its name. Copies share the lease. Any
/// thread.
class FEEDRATE_EXPORT Tensor {
 public:
  Tensor() = default;
  explicit operator bool() const { return held_ != nullptr; }

  const std::string& name() const;
  std::uint64_t generation() const;
  const Layout& layout() const;
  std::size_t bytes() const;
  /// The elements; null where there are none. On a GPU an address of its memory.
  void* data() const;
  /// Of the GPU whose memory it is, in this process; -1: the host's.
  int cuda_index() const;
  /// Copies bytes from or to host memory, those from `offset` on, and returns when that is done. Throws BadInput.
  void write(std::span<const std::byte> from, std::size_t offset = 0) const;
  void read(std::span<std::byte> to, std::size_t offset = 0) const;
  /// Whether the name was deleted meanwhile; the memory stays as it is.
  bool deleted() const;
  /// Whether nobody shall write any more.
  bool sealed() const;

  /// Of what was published last; 0: nothing yet, all is zero.
  std::uint64_t version() const;
  /// Says that what was written is whole: the next version; returns which. For one writer at a time, whose writes have
  /// ended.
  std::uint64_t publish();
  /// Gives a tensor of Store::stage() its name, once. Throws AlreadyExists, BadInput if it has had it, Unreachable if
  /// its daemon is gone.
  void commit() const;
  /// True once the version is `version` or later; false when it isn't within `limit`.
  bool wait_for(std::uint64_t version, std::chrono::nanoseconds limit) const;
  /// The same in the order of a stream (a cudaStream_t of this process and of the tensor's GPU); the host waits for
  /// nothing. The version is whole once the stream comes there; returns which. Throws BadInput for host memory.
  std::uint64_t publish_on(void* stream);
  /// What is queued on the stream from now on runs once the version is `version` or later. A version that never comes
  /// holds the stream for ever, and then nothing of this process lets go of a GPU's tensor, which waits for all of the
  /// GPU's work. Where the writer is a stream of this process, queue what it does first: streams may share a queue of
  /// the hardware.
  void wait_on(void* stream, std::uint64_t version) const;

  /// For a tensor that is written again and again while others read: its first dimension is 2, and versions lie in
  /// these halves in turn. The half for the next version, which readers of the last one don't look at. Throws BadInput
  /// where the tensor has no halves or is sealed. Ends with publish().
  std::span<std::byte> begin_half();
  /// The same for a half that a stream writes, which then ends with publish_on() in that stream.
  std::span<std::byte> begin_half_on(void* stream);
  /// Copies the last version's half, whole: what was written over meanwhile is read again. Returns the version. `to`
  /// has half of the tensor's bytes.
  std::uint64_t read_half(std::span<std::byte> to) const;
  /// Where a version lies, to be read where it is; and, after all reading of it has ended, whether it was that version
  /// all the while.
  std::span<std::byte> half(std::uint64_t version) const;
  bool still_holds(std::uint64_t version) const;

  /// What all processes know of it; for those who order streams of their own.
  TensorWords& words() const;

 private:
  friend class Store;
  struct Held;
  explicit Tensor(std::shared_ptr<Held> held) : held_(std::move(held)) {}
  void check_part(std::size_t bytes, std::size_t offset) const;
  void check_halves() const;
  std::uint64_t next_version() const;
  std::shared_ptr<Held> held_;
};

/// An event of a GPU that other processes' streams wait for, for those who order work by events and not by versions.
/// Its handle travels by any way, a tensor's bytes among them. It ends with the process that made it, and with it what
/// waits for it.
class FEEDRATE_EXPORT SharedEvent {
 public:
  /// On the GPU of this CUDA index. Throws Failure; BadInput in a build without CUDA.
  static SharedEvent create(int gpu);
  /// Another process's. Throws BadInput for what is no handle, Failure where it can't be opened.
  static SharedEvent open(std::string_view handle, int gpu);
  /// 64 bytes.
  std::string handle() const;
  /// In the order of a stream (a cudaStream_t): it happens, or what follows waits until it has happened. An event that
  /// was not recorded yet holds nobody.
  void record(void* stream) const;
  void wait_on(void* stream) const;
  bool done() const;

 private:
  struct State;
  explicit SharedEvent(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

struct StoreOptions {
  std::chrono::milliseconds patience{10'000};  ///< for an answer of the daemon; then Unreachable
};

/// A connection to a daemon. When that was restarted, the next request goes to the new one, which has none of the old
/// one's tensors; those leased here stay. Any thread; of one process: a child made by fork() connects by itself.
class FEEDRATE_EXPORT Store {
 public:
  /// Throws Unreachable where no daemon answers.
  explicit Store(std::string socket, StoreOptions options = {});
  ~Store();
  Store(Store&&) noexcept;
  Store& operator=(Store&&) noexcept;

  /// A new tensor, all zero. Throws AlreadyExists, OutOfMemory, LimitReached, BadInput.
  Tensor create(const std::string& name, const Layout&, const CreateOptions& = {});
  /// The same without its name until Tensor::commit(): no reader finds it half written. If it is never committed, it
  /// goes with its last lease. `replace`: the name leads to the old tensor until then; memory must hold both.
  Tensor stage(const std::string& name, const Layout&, const CreateOptions& = {});
  /// The tensor that has the name now. Where this process holds it already, the daemon is not asked. Throws NotFound.
  Tensor get(const std::string& name);
  /// The same, once there is one. Throws TimedOut.
  Tensor wait(const std::string& name, std::chrono::nanoseconds limit);
  /// Deletes the name; `generation`: only if it is still that one's. Throws NotFound.
  void remove(const std::string& name, std::uint64_t generation = 0);
  Description stat(const std::string& name);
  /// All names in their bytes' order. Asks several times: what changes meanwhile may be in it or not.
  std::vector<Description> list();
  void pin(const std::string& name, bool pinned = true);
  /// Nobody shall write any more: what is published stays. A rule among those who keep to it, not a lock.
  void seal(const std::string& name);
  /// Deletes names that nobody holds or pinned, least recently used first, until `bytes` are freed; 0: all of them.
  /// Returns the bytes freed.
  std::size_t evict(std::size_t bytes = 0);
  /// What the daemon says of itself, as a JSON object: device, memory, tensors, leases, clients.
  std::string status();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace feedrate::tensors
