#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/export.hpp"
#include "libraries/tensors/errors.hpp"
#include "libraries/tensors/tensor.hpp"

/// Client of the tensor store: tensors by name, in memory that all processes of a machine share and that outlives the
/// processes that created it. A daemon owns the memory (`feedrate store serve`).
///
///     feedrate::tensors::Store store("/run/feedrate/store.sock");
///     auto weights = store.create("weights", {Dtype::f32, {1024, 1024}});
///     fill(weights.data());
///     weights.publish();                                     // tells other processes that the data is complete
///     // in another process
///     auto weights = store.get("weights");                   // the same memory
///     weights.wait_for(1, std::chrono::seconds(5));
///
/// Errors: the ones in errors.hpp, which name the tensor; BadInput for an invalid request; Failure for any other error.
/// All are std::runtime_error.
namespace feedrate::tensors {

/// A lease on a tensor. The tensor's memory stays as long as a lease exists, even after its name was deleted. Copies
/// share the lease. Any thread.
class FEEDRATE_EXPORT Tensor {
 public:
  Tensor() = default;
  explicit operator bool() const { return held_ != nullptr; }

  const std::string& name() const;
  std::uint64_t generation() const;
  const Layout& layout() const;
  std::size_t bytes() const;
  /// The elements; null if there are none. For a GPU's tensor, an address in the GPU's memory.
  void* data() const;
  /// CUDA index, in this process, of the GPU that owns the memory; -1 for host memory.
  int cuda_index() const;
  /// Copies bytes from or to host memory, starting at `offset` in the tensor. Returns when the copy is complete. Throws
  /// BadInput.
  void write(std::span<const std::byte> from, std::size_t offset = 0) const;
  void read(std::span<std::byte> to, std::size_t offset = 0) const;
  /// Whether the name has been deleted; the memory does not change.
  bool deleted() const;
  /// Whether the tensor is sealed: there will be no more writes.
  bool sealed() const;

  /// The version published last; 0: none yet, the contents are all zero.
  std::uint64_t version() const;
  /// Declares the next version complete and returns its number. Only one writer at a time may call it, after its writes
  /// have ended.
  std::uint64_t publish();
  /// Gives a tensor from Store::stage() its name, once. Throws AlreadyExists; BadInput if it was committed before;
  /// Unreachable if its daemon is gone.
  void commit() const;
  /// Waits until the version is `version` or later. False if that does not happen within `limit`.
  bool wait_for(std::uint64_t version, std::chrono::nanoseconds limit) const;
  /// Publishes in the order of a stream (a cudaStream_t of this process and of the tensor's GPU): the version is
  /// complete once the stream reaches this point. The call does not wait. Returns the version. Throws BadInput for host
  /// memory.
  std::uint64_t publish_on(void* stream);
  /// Work queued on the stream after this call runs once the version is `version` or later. A version that is never
  /// published blocks the stream forever; then this process can release no tensor of that GPU, because a release waits
  /// for all of the GPU's work. If the writer is a stream of this process, queue the writer's work first: streams may
  /// share a hardware queue.
  void wait_on(void* stream, std::uint64_t version) const;

  /// Use this for a tensor that is rewritten while others read it. Its first dimension is 2, and versions alternate
  /// between the two halves. Returns the half for the next version, which readers of the latest version do not access;
  /// publish() completes the write. Throws BadInput if the tensor has no halves or is sealed.
  std::span<std::byte> begin_half();
  /// Returns the half for a stream to write; publish_on() in that stream completes the write.
  std::span<std::byte> begin_half_on(void* stream);
  /// Copies the half with the latest version and returns the version. A half that was overwritten during the copy is
  /// read again, so the copy is consistent. `to` has half of the tensor's bytes.
  std::uint64_t read_half(std::span<std::byte> to) const;
  /// half() returns the half that holds a version, to be read in place. After all reads, still_holds() returns whether
  /// the half held that version throughout.
  std::span<std::byte> half(std::uint64_t version) const;
  bool still_holds(std::uint64_t version) const;

  /// The words that all processes share, for programs that order streams themselves.
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

/// A GPU event that streams of other processes can wait for; use it to order work by events instead of versions. Its
/// handle can be sent in any way, for example in a tensor's bytes. The event is destroyed when the process that
/// created it exits; pending waits for it then end as well.
class FEEDRATE_EXPORT SharedEvent {
 public:
  /// Creates an event on the GPU with this CUDA index. Throws Failure; BadInput in a build without CUDA.
  static SharedEvent create(int gpu);
  /// Opens another process's event. Throws BadInput for an invalid handle, Failure if the event cannot be opened.
  static SharedEvent open(std::string_view handle, int gpu);
  /// The handle, 64 bytes.
  std::string handle() const;
  /// record() and wait_on() work in the order of a stream (a cudaStream_t). After wait_on(), the stream waits until
  /// the event has completed. Waiting for an event that was not recorded yet does not block.
  void record(void* stream) const;
  void wait_on(void* stream) const;
  bool done() const;

 private:
  struct State;
  explicit SharedEvent(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

struct StoreOptions {
  std::chrono::milliseconds patience{10'000};  ///< timeout for the daemon's answer; after it, Unreachable is thrown
};

/// A connection to a daemon. After a restart of the daemon, the next request goes to the new one, which has none of the
/// old one's tensors; tensors leased here stay. Any thread may use it, but only in one process: a child created by
/// fork() needs its own Store.
class FEEDRATE_EXPORT Store {
 public:
  /// Throws Unreachable if no daemon answers.
  explicit Store(std::string socket, StoreOptions options = {});
  ~Store();
  Store(Store&&) noexcept;
  Store& operator=(Store&&) noexcept;

  /// Creates a tensor filled with zeros. Throws AlreadyExists, OutOfMemory, LimitReached, BadInput.
  Tensor create(const std::string& name, const Layout&, const CreateOptions& = {});
  /// Creates a tensor that gets its name only with Tensor::commit(), so that no reader finds it half written. If it is
  /// never committed, it is freed with its last lease. `replace`: the name refers to the old tensor until the commit;
  /// the store needs memory for both.
  Tensor stage(const std::string& name, const Layout&, const CreateOptions& = {});
  /// Returns the tensor that has the name now. If this process already holds it, the daemon is not contacted. Throws
  /// NotFound.
  Tensor get(const std::string& name);
  /// Waits until a tensor has the name and returns that tensor. Throws TimedOut.
  Tensor wait(const std::string& name, std::chrono::nanoseconds limit);
  /// Deletes the name. With `generation`, only if the name still belongs to that generation. Throws NotFound.
  void remove(const std::string& name, std::uint64_t generation = 0);
  Description stat(const std::string& name);
  /// Returns all tensors with a name, in byte order of the names. The call sends several requests; changes in between
  /// may or may not be included.
  std::vector<Description> list();
  void pin(const std::string& name, bool pinned = true);
  /// Declares that there will be no more writes, so the published version is final. This is a convention, not a lock.
  void seal(const std::string& name);
  /// Deletes tensors that are neither leased nor pinned, least recently used first, until `bytes` are freed; 0: all.
  /// Returns the number of bytes freed.
  std::size_t evict(std::size_t bytes = 0);
  /// Returns the daemon's status as a JSON object: device, memory, tensors, leases, clients.
  std::string status();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace feedrate::tensors
