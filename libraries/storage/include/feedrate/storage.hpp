#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/error.hpp"
#include "common/export.hpp"

/// Reads records of files and block devices into the memory of a GPU, and writes them back.
///
///     feedrate::storage::Source source({"train-0.bin", "train-1.bin"});
///     const unsigned images = source.add_kind({.name = "images", .record_bytes = 150'528});
///     source.read(images, 0, 256, gpu_pointer);                       // returns once 256 records have arrived
///     auto later = source.read_async(images, 256, 256, other_pointer);
///     later.wait();
///
/// Errors: StorageError names the source, the kind, the record and the cause; BadInput is for an invalid request,
/// Failure for an error of the device. All are std::runtime_error.
namespace feedrate::storage {

/// A request that a file or a drive did not fulfil.
class FEEDRATE_EXPORT StorageError : public Failure {
 public:
  StorageError(const std::string& text, int error) : Failure(text), error_(error) {}
  /// The errno value of the cause; 0 if the file ended too early or a checksum is wrong.
  int error() const { return error_; }

 private:
  int error_;
};

/// Records in an extent of a source: either all of one size, or each from one offset to the next.
struct Kind {
  std::string name = {};            ///< for messages, and to find the kind; may be empty
  std::uint64_t start = 0;          ///< first byte in the source, whose files lie end to end
  std::uint64_t bytes = kToTheEnd;  ///< length of the extent; used only if the records have one size
  std::uint64_t record_bytes = 0;   ///< size of each record; 0: `offsets` give the sizes
  /// Of variable records: the first byte of each, counted from `start`, and the end of the last one.
  std::vector<std::uint64_t> offsets = {};

  static constexpr std::uint64_t kToTheEnd = ~std::uint64_t{0};
};

/// A record to read or write, and its place in device memory. The place need not be aligned.
struct Record {
  unsigned kind = 0;
  std::uint64_t index = 0;
  void* place = nullptr;
};

struct SourceOptions {
  std::string device = "auto";  ///< where the places are: `cuda`, `cpu` (this process's memory), or `auto`
  unsigned gpu = 0;             ///< CUDA index
  std::string engine = "auto";  ///< `threads`, `io_uring`, or `auto`
  bool direct = false;          ///< bypass the page cache (O_DIRECT)
  bool writable = false;
  std::size_t block = std::size_t{1} << 20;  ///< bytes of the largest single request to the system
  unsigned depth = 32;                       ///< requests in flight
  std::size_t gap = std::size_t{16} << 10;   ///< a batch reads up to this many bytes between two records to join them
};

/// Totals since the source was opened.
struct Statistics {
  std::uint64_t records = 0;        ///< moved
  std::uint64_t record_bytes = 0;   ///< bytes of these records
  std::uint64_t requests = 0;       ///< requests to the system
  std::uint64_t request_bytes = 0;  ///< bytes that they moved, with gaps and alignment
  std::uint64_t errors = 0;         ///< failed reads and writes
};

/// When a request begins, relative to the work on a CUDA stream (a cudaStream_t of the source's GPU).
struct Order {
  bool streamed = false;  ///< false: the request begins at once
  void* stream = nullptr;
  bool holds = false;

  /// The request begins once the work queued on the stream so far has ended. Later work on the stream does not wait.
  static Order after(void* stream) { return {true, stream, false}; }
  /// The same, and later work on the stream waits for the end of the request. If the request fails, the stream goes on
  /// without the data, so ask the Pending before the results are used. Until the end, no thread of the process may make
  /// a call that waits for the entire GPU: cudaFree, cudaFreeHost, cudaHostUnregister, cudaDeviceSynchronize, or the
  /// first launch of a kernel that is loaded lazily. Such a call waits for the stream, and may hold a lock that the
  /// request needs.
  static Order in(void* stream) { return {true, stream, true}; }
};

class Job;

/// A read or write that is under way. Copies refer to the same one. Any thread. The destructor does not wait; the
/// places must stay valid until it has ended.
class FEEDRATE_EXPORT Pending {
 public:
  /// Whether it has ended, successfully or not.
  bool ready() const;
  /// Waits for the end. Throws StorageError or Failure if it failed.
  void wait() const;
  /// Waits at most this long; false if it has not ended by then. Throws like wait().
  bool wait_for(std::chrono::nanoseconds limit) const;

 private:
  friend class Source;
  explicit Pending(std::shared_ptr<Job> job) : job_(std::move(job)) {}
  std::shared_ptr<Job> job_;
};

/// Files laid end to end, or one block device, opened for reading or also for writing. A thread of the source moves the
/// data. Requests of one source may end in any order. Any thread may use it, but only in the process that opened it.
class FEEDRATE_EXPORT Source {
 public:
  /// Throws BadInput for invalid options or a path that is neither a file nor a block device, Failure if one cannot be
  /// opened.
  explicit Source(std::vector<std::string> paths, const SourceOptions& = {});
  /// Waits for the requests that have begun; all others fail.
  ~Source();
  Source(Source&&) noexcept;
  Source& operator=(Source&&) noexcept;

  /// Bytes of all files.
  std::uint64_t bytes() const;
  /// First byte of a file, by its position in the list of paths. Throws BadInput.
  std::uint64_t begin_of(unsigned file) const;
  /// Names the engine and the reason for its choice.
  std::string engine() const;

  /// Adds a kind and returns its number. Throws BadInput if it does not lie within the source or its offsets decrease.
  unsigned add_kind(Kind);
  /// The number of a kind with a name. Throws BadInput.
  unsigned find(std::string_view name) const;
  /// Number of records, and the size of one or several consecutive ones. Throw BadInput.
  std::uint64_t records(unsigned kind) const;
  std::uint64_t bytes_of(unsigned kind, std::uint64_t first, std::uint64_t count = 1) const;

  /// Reads `count` consecutive records to consecutive places. The asynchronous calls do not wait. Throws StorageError,
  /// BadInput, Failure. An order of a stream is BadInput for `cpu`.
  void read(unsigned kind, std::uint64_t first, std::uint64_t count, void* place);
  Pending read_async(unsigned kind, std::uint64_t first, std::uint64_t count, void* place, const Order& = {});
  /// Reads records of any kinds, each to its own place. Neighbouring ones are read together.
  void read_batch(std::span<const Record>);
  Pending read_batch_async(std::span<const Record>, const Order& = {});
  /// Reads any bytes, regardless of kinds.
  void read_bytes(std::uint64_t start, std::uint64_t bytes, void* place);
  Pending read_bytes_async(std::uint64_t start, std::uint64_t bytes, void* place, const Order& = {});

  /// Writes what reads would read. When it has ended, the data is in the file as far as write() guarantees it; sync()
  /// makes it durable. Throws BadInput also if the source is not writable.
  void write(unsigned kind, std::uint64_t first, std::uint64_t count, const void* place);
  Pending write_async(unsigned kind, std::uint64_t first, std::uint64_t count, const void* place, const Order& = {});
  void write_bytes(std::uint64_t start, std::uint64_t bytes, const void* place);
  Pending write_bytes_async(std::uint64_t start, std::uint64_t bytes, const void* place, const Order& = {});
  /// Waits until all data written so far is on the drive (fdatasync). Throws StorageError.
  void sync();

  Statistics statistics() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace feedrate::storage
