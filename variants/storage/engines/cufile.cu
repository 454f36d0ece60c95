#include "common/error.hpp"
#include "variants/storage/engine.hpp"
#ifdef __CUDACC__
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <deque>
#include <fstream>
#include <iterator>
#include <vector>

#include "common/device/cuda_check.hpp"
#include "libraries/storage/files.hpp"
#include "libraries/storage/slots.hpp"
#endif

/// NVIDIA's cuFile (GPUDirect Storage), loaded at run time. The declarations follow its documented binary interface
/// ("cuFile API Reference Guide", NVIDIA), because its header is not part of the packages that a build needs.
namespace feedrate::storage {
namespace {

struct CufileOptions {
  std::string api = "sync";
};
const Axes<CufileOptions>& own_axes_of_cufile() {
  static const auto kAxes =
      Axes<CufileOptions>().word("cufile", &CufileOptions::api, {"sync", "batch", "stream"},
                                 "sync: cuFileRead, one request at a time; batch: cuFileBatchIOSubmit; stream: "
                                 "cuFileReadAsync");
  return kAxes;
}

#ifdef __CUDACC__
struct Status {
  int code = 0;  // CUfileOpError
  int driver = 0;
};
struct FileDescription {
  int type = 1;  // a Linux file descriptor
  union {
    int descriptor;
    void* pointer;
  } handle{};
  const void* operations = nullptr;
};
struct BatchRequest {
  int mode = 1;
  struct {
    void* device = nullptr;
    off_t file_offset = 0, device_offset = 0;
    std::size_t bytes = 0;
  } request;
  void* file = nullptr;
  int operation = 0;  // 0: read, 1: write
  void* cookie = nullptr;
};
struct BatchEvent {
  void* cookie = nullptr;
  int state = 0;
  std::size_t result = 0;
};
constexpr int kComplete = 0x10, kInvalid = 0x04, kCancelled = 0x08, kTimedOut = 0x20, kFailed = 0x40;

/// The functions of the library that are used here. Opened once, and never closed: cuFile's threads use it.
class Library {
 public:
  static const Library& instance() {
    static const Library library;
    return library;
  }
  /// Why the library cannot be used; empty if it can.
  const std::string& unavailable() const { return unavailable_; }
  /// The counters of nvidia-fs, which change with each transfer by GPUDirect; empty if it is not loaded.
  static std::string counters() {
    std::ifstream file("/proc/driver/nvidia-fs/stats");
    return {std::istreambuf_iterator<char>(file), {}};
  }

  Status (*set_flag)(int, bool) = nullptr;  // absent from older versions, whose default is the same
  Status (*driver_open)() = nullptr;
  Status (*register_file)(void**, FileDescription*) = nullptr;
  void (*deregister_file)(void*) = nullptr;
  ssize_t (*read)(void*, void*, std::size_t, off_t, off_t) = nullptr;
  ssize_t (*write)(void*, const void*, std::size_t, off_t, off_t) = nullptr;
  Status (*read_async)(void*, void*, std::size_t*, off_t*, off_t*, ssize_t*, cudaStream_t) = nullptr;
  Status (*write_async)(void*, void*, std::size_t*, off_t*, off_t*, ssize_t*, cudaStream_t) = nullptr;
  Status (*batch_open)(void**, unsigned) = nullptr;
  Status (*batch_submit)(void*, unsigned, BatchRequest*, unsigned) = nullptr;
  Status (*batch_status)(void*, unsigned, unsigned*, BatchEvent*, timespec*) = nullptr;
  void (*batch_close)(void*) = nullptr;

 private:
  Library() {
    for (const char* name : {"libcufile.so.0", "/usr/local/cuda/lib64/libcufile.so.0"}) {
      if (library_ == nullptr) library_ = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
    }
    if (library_ == nullptr) {
      unavailable_ = "libcufile.so.0 is not installed (CUDA Toolkit, or PyPI's nvidia-cufile on LD_LIBRARY_PATH)";
      return;
    }
    set_flag = reinterpret_cast<Status (*)(int, bool)>(::dlsym(library_, "cuFileSetParameterBool"));
    find(driver_open, "cuFileDriverOpen");
    find(register_file, "cuFileHandleRegister");
    find(deregister_file, "cuFileHandleDeregister");
    find(read, "cuFileRead");
    find(write, "cuFileWrite");
    find(read_async, "cuFileReadAsync");
    find(write_async, "cuFileWriteAsync");
    find(batch_open, "cuFileBatchIOSetUp");
    find(batch_submit, "cuFileBatchIOSubmit");
    find(batch_status, "cuFileBatchIOGetStatus");
    find(batch_close, "cuFileBatchIODestroy");
  }
  template <class Function>
  void find(Function& function, const char* name) {
    function = reinterpret_cast<Function>(::dlsym(library_, name));
    if (function == nullptr && unavailable_.empty()) unavailable_ = std::string("this libcufile has no ") + name;
  }
  void* library_ = nullptr;
  std::string unavailable_;
};

std::string reason_of(int code) {
  if (code == 5027) {
    return "error 5027: cuFile cannot identify the file's drive or does not support its file system (it supports ext4 "
           "and XFS, not overlayfs); in a container, it needs the host's /run/udev; see cufile.log in this folder";
  }
  if (code == 5001) return "error 5001: the driver is not initialised; see cufile.log in this folder";
  return "error " + std::to_string(code) + " (CUfileOpError)";
}
/// Opens the driver. Without nvidia-fs it works only in compatibility mode, which is allowed here unless a file of the
/// user's decides.
Status open_driver() {
  constexpr int kAllowCompatibilityMode = 1;
  const Library& library = Library::instance();
  if (library.set_flag != nullptr && std::getenv("CUFILE_ENV_PATH_JSON") == nullptr) {
    library.set_flag(kAllowCompatibilityMode, true);
  }
  return library.driver_open();
}
void check_cufile(Status status, const char* what) {
  if (status.code != 0) throw Failure(std::string(what) + ": " + reason_of(status.code));
}

/// A file that is registered with cuFile.
class CufileHandle {
 public:
  explicit CufileHandle(int descriptor) {
    FileDescription description;
    description.handle.descriptor = descriptor;
    check_cufile(Library::instance().register_file(&handle_, &description), "cuFileHandleRegister");
  }
  CufileHandle(CufileHandle&& other) noexcept : handle_(other.handle_) { other.handle_ = nullptr; }
  CufileHandle(const CufileHandle&) = delete;
  CufileHandle& operator=(const CufileHandle&) = delete;
  CufileHandle& operator=(CufileHandle&&) = delete;
  ~CufileHandle() {
    if (handle_ != nullptr) Library::instance().deregister_file(handle_);
  }
  void* get() const { return handle_; }

 private:
  void* handle_ = nullptr;
};

/// The common part of all three interfaces: the files, and the requests in flight.
class Cufile : public Engine {
 public:
  explicit Cufile(const EngineConfig& config) : operation_(config.operation), files_(config), slots_(config.depth) {
    static const Status kOpened = open_driver();
    check_cufile(kOpened, "cuFileDriverOpen");
    register_files();
    if (operation_ == Operation::read && config.files.front().bytes != 0) try_read(config);
  }
  bool reopen() override {
    handles_.clear();
    files_.reopen();
    register_files();
    return true;
  }
  std::map<std::string, std::string> path() const override { return {{"mode", mode_}}; }

 protected:
  /// Reads the start of the first file, because cuFile accepts files that it cannot read, and only its counters tell
  /// whether it used GPUDirect.
  void try_read(const EngineConfig& config) {
    const std::size_t bytes = std::min<std::uint64_t>(kDirectAlignment, config.files.front().bytes);
    const Buffer memory = config.device.allocate_device(bytes),
                 copy = config.device.allocate_host(bytes, HostMemory::pinned);
    const std::string before = Library::counters();
    const ssize_t result = Library::instance().read(handles_.front().get(), memory.data(), bytes, 0, 0);
    if (result <= -5000) throw Failure("cuFile's trial read: " + reason_of(static_cast<int>(-result)));
    if (result != static_cast<ssize_t>(bytes)) {
      throw Failure("cuFile's trial read of " + config.files.front().path + " returned " + std::to_string(result));
    }
    std::vector<std::byte> wanted(bytes);
    static_cast<void>(move_block(Operation::read, files_.descriptor(0, 0, 1), wanted.data(), {.bytes = bytes}));
    check(cudaMemcpy(copy.data(), memory.data(), bytes, cudaMemcpyDeviceToHost), "cudaMemcpy");
    if (std::memcmp(copy.data(), wanted.data(), bytes) != 0) throw Failure("cuFile's trial read returned wrong bytes");
    mode_ = before != Library::counters() ? "cuFile by GPUDirect (nvidia-fs counted a trial read)"
            : before.empty()              ? "cuFile in compatibility mode (no nvidia-fs)"
                                          : "cuFile in compatibility mode (nvidia-fs did not count a trial read)";
  }
  void register_files() {
    for (unsigned i = 0; i < files_.size(); ++i) handles_.emplace_back(files_.descriptor(i, 0, kDirectAlignment));
  }
  /// Ends a slot's request with cuFile's result: bytes, or a negative error.
  void finish(std::size_t slot, ssize_t result) {
    if (result >= 0) {
      slots_.bytes(slot) = static_cast<std::size_t>(result);
      return slots_.end(slot);
    }
    if (result <= -5000) throw Failure("cuFile: " + reason_of(static_cast<int>(-result)));
    slots_.end(slot, result == -1 ? errno : static_cast<int>(-result));
  }

  Operation operation_;
  OpenFiles files_;
  std::vector<CufileHandle> handles_;
  Slots slots_;
  std::string mode_ = "cuFile";
};

class CufileSync final : public Cufile {
 public:
  using Cufile::Cufile;
  bool submit(const Request& request) override {
    if (slots_.full()) return false;
    const std::size_t slot = slots_.take(request);
    void* const file = handles_.at(request.file).get();
    const Library& library = Library::instance();
    const auto offset = static_cast<off_t>(request.offset);
    errno = 0;
    finish(slot, operation_ == Operation::read ? library.read(file, request.device, request.bytes, offset, 0)
                                               : library.write(file, request.device, request.bytes, offset, 0));
    return true;
  }
  std::size_t poll(std::span<Completion> ended) override { return slots_.poll(ended); }
};

class CufileBatch final : public Cufile {
 public:
  explicit CufileBatch(const EngineConfig& config) : Cufile(config), events_(config.depth) {
    check_cufile(Library::instance().batch_open(&batch_, static_cast<unsigned>(config.depth)), "cuFileBatchIOSetUp");
  }
  ~CufileBatch() override { Library::instance().batch_close(batch_); }
  CufileBatch(const CufileBatch&) = delete;
  CufileBatch& operator=(const CufileBatch&) = delete;

  bool submit(const Request& request) override {
    if (slots_.full()) return false;
    const std::size_t slot = slots_.take(request);
    BatchRequest entry;
    entry.request = {request.device, static_cast<off_t>(request.offset), 0, request.bytes};
    entry.file = handles_.at(request.file).get();
    entry.operation = operation_ == Operation::read ? 0 : 1;
    entry.cookie = reinterpret_cast<void*>(slot);
    waiting_.push_back(entry);
    return true;
  }
  void flush() override {
    if (waiting_.empty()) return;
    check_cufile(Library::instance().batch_submit(batch_, static_cast<unsigned>(waiting_.size()), waiting_.data(), 0),
                 "cuFileBatchIOSubmit");
    running_ += waiting_.size();
    waiting_.clear();
  }
  std::size_t poll(std::span<Completion> ended) override {
    flush();
    if (running_ != 0) {
      auto count = static_cast<unsigned>(events_.size());
      timespec at_once{};
      check_cufile(Library::instance().batch_status(batch_, 0, &count, events_.data(), &at_once),
                   "cuFileBatchIOGetStatus");
      for (unsigned i = 0; i < count; ++i) {
        const BatchEvent& event = events_[i];
        if ((event.state & (kComplete | kInvalid | kCancelled | kTimedOut | kFailed)) == 0) continue;
        --running_;
        const auto slot = reinterpret_cast<std::size_t>(event.cookie);
        finish(slot, event.state == kComplete ? static_cast<ssize_t>(event.result) : -EIO);
      }
    }
    return slots_.poll(ended);
  }

 private:
  void* batch_ = nullptr;
  std::vector<BatchEvent> events_;
  std::vector<BatchRequest> waiting_;
  std::size_t running_ = 0;
};

class CufileStream final : public Cufile {
 public:
  explicit CufileStream(const EngineConfig& config) : Cufile(config), calls_(config.depth) {
    for (cudaStream_t& stream : streams_) {
      check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
    }
    for (Call& call : calls_) check(cudaEventCreateWithFlags(&call.event, cudaEventDisableTiming), "cudaEventCreate");
  }
  ~CufileStream() override {
    for (cudaStream_t stream : streams_) {
      cudaStreamSynchronize(stream);
      cudaStreamDestroy(stream);
    }
    for (const Call& call : calls_) cudaEventDestroy(call.event);
  }
  CufileStream(const CufileStream&) = delete;
  CufileStream& operator=(const CufileStream&) = delete;

  bool submit(const Request& request) override {
    if (slots_.full()) return false;
    const std::size_t slot = slots_.take(request), lane = next_++ % kStreams;
    Call& call = calls_[slot];
    call.bytes = request.bytes;
    call.offset = static_cast<off_t>(request.offset);
    call.device_offset = 0;
    call.result = 0;
    const Library& library = Library::instance();
    const auto function = operation_ == Operation::read ? library.read_async : library.write_async;
    check_cufile(function(handles_.at(request.file).get(), request.device, &call.bytes, &call.offset,
                          &call.device_offset, &call.result, streams_[lane]),
                 "cuFileReadAsync");
    check(cudaEventRecord(call.event, streams_[lane]), "cudaEventRecord");
    running_[lane].push_back(slot);
    return true;
  }
  std::size_t poll(std::span<Completion> ended) override {
    for (std::deque<std::size_t>& lane : running_) {
      while (!lane.empty()) {
        const std::size_t slot = lane.front();
        const cudaError_t state = cudaEventQuery(calls_[slot].event);
        if (state == cudaErrorNotReady) break;
        check(state, "cudaEventQuery");
        lane.pop_front();
        finish(slot, calls_[slot].result);
      }
    }
    return slots_.poll(ended);
  }

 private:
  static constexpr std::size_t kStreams = 8;
  /// The arguments of a call, which cuFile reads when the stream reaches it.
  struct Call {
    std::size_t bytes = 0;
    off_t offset = 0, device_offset = 0;
    ssize_t result = 0;
    cudaEvent_t event = nullptr;
  };
  cudaStream_t streams_[kStreams] = {};
  std::vector<Call> calls_;  // indexed by slot
  std::deque<std::size_t> running_[kStreams];
  std::size_t next_ = 0;
};

std::unique_ptr<Engine> make_cufile(const PointConfig& config) {
  const std::string api = own_axes_of_cufile().of(config.own).api;
  if (api == "batch") return std::make_unique<CufileBatch>(config);
  if (api == "stream") return std::make_unique<CufileStream>(config);
  return std::make_unique<CufileSync>(config);
}
std::string why_cufile_is_unavailable() { return Library::instance().unavailable(); }
#else
std::unique_ptr<Engine> make_cufile(const PointConfig& /*config*/) { throw Failure(cuda_unavailable()); }
std::string why_cufile_is_unavailable() { return cuda_unavailable(); }
#endif

const EngineRegistration registered(
    "cufile",
    {.description = "NVIDIA's cuFile: GPUDirect Storage if the system supports it, else its compatibility mode",
     .axes = own_axes_of_cufile().list(),
     .unavailable = why_cufile_is_unavailable,
     .why_unsupported = [](const EnginePoint& point) -> std::string {
       if (point.device != "cuda") return "engine cufile needs --device cuda";
       const bool batch = own_axes_of_cufile().of(point.own).api == "batch";
       return batch && point.depth > 128 ? "--cufile batch allows a depth of at most 128" : "";
     },
     .make = make_cufile});

}  // namespace
}  // namespace feedrate::storage
