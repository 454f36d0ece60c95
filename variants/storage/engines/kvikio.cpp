#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "common/error.hpp"
#include "libraries/storage/files.hpp"
#include "libraries/storage/slots.hpp"
#include "variants/storage/engine.hpp"
#include "variants/storage/kvikio/module.hpp"

/// RAPIDS KvikIO, the library that users would otherwise choose: threads that read into pinned bounce buffers, or
/// cuFile. The engine loads a module that is built if libkvikio is installed (experiments/storage/README.md).
namespace feedrate::storage {
namespace {

struct KvikioOptions {
  unsigned threads = 8;
  std::string compat = "on";
};
const Axes<KvikioOptions>& own_axes_of_kvikio() {
  static const auto kAxes =
      Axes<KvikioOptions>()
          .number("kvikio-threads", &KvikioOptions::threads, {1, 128},
                  "threads in KvikIO's pool, which the process shares")
          .word("kvikio-compat", &KvikioOptions::compat, {"on", "auto", "off"},
                "KvikIO's compatibility mode: on = system calls, off = cuFile, auto = cuFile if it is installed");
  return kAxes;
}

/// The module, loaded once and never closed, because KvikIO's threads use it.
class Module {
 public:
  static const Module& instance() {
    static const Module module;
    return module;
  }
  const std::string& unavailable() const { return unavailable_; }
  const FeedrateKvikio* operator->() const { return interface_; }

 private:
  Module() {
    if (unavailable_ = cuda_unavailable(); !unavailable_.empty()) return;
    std::error_code ignored;
    const auto path = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path() / "feedrate_kvikio.so";
    if (!std::filesystem::exists(path, ignored)) {
      unavailable_ = "this build has no KvikIO; install it and build again (pip install libkvikio-cu13)";
      return;
    }
    void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    void* const symbol = library == nullptr ? nullptr : ::dlsym(library, kFeedrateKvikioSymbol);
    if (symbol == nullptr) {
      unavailable_ = fmt::format("KvikIO cannot be loaded: {}", ::dlerror());
      return;
    }
    interface_ = reinterpret_cast<const FeedrateKvikio* (*)()>(symbol)();
    if (interface_->version != kFeedrateKvikioVersion) unavailable_ = "feedrate_kvikio.so is of another build";
  }
  const FeedrateKvikio* interface_ = nullptr;
  std::string unavailable_;
};

class Kvikio final : public Engine {
 public:
  explicit Kvikio(const PointConfig& config)
      : options_(own_axes_of_kvikio().of(config.own)),
        named_(config.files),
        operation_(config.operation),
        slots_(config.depth),
        transfers_(config.depth) {
    module_->configure(options_.threads, config.block, config.direct);
    try {
      open();
    } catch (...) {
      close();
      throw;
    }
  }
  ~Kvikio() override {
    for (void* const transfer : transfers_) {
      if (transfer != nullptr) module_->abandon(transfer);
    }
    close();
  }
  Kvikio(const Kvikio&) = delete;
  Kvikio& operator=(const Kvikio&) = delete;

  bool submit(const Request& request) override {
    if (slots_.full()) return false;
    const std::size_t slot = slots_.take(request);
    const bool writes = operation_ == Operation::write;
    // KvikIO reports the end of the file as an error.
    const std::uint64_t end = writes ? request.offset + request.bytes : named_[request.file].bytes;
    const std::uint64_t bytes = std::min<std::uint64_t>(request.bytes, end - std::min(end, request.offset));
    if (bytes == 0) {
      slots_.end(slot);
      return true;
    }
    transfers_[slot] = module_->start(files_.at(request.file), writes, request.device, bytes, request.offset, text_);
    if (transfers_[slot] == nullptr) throw Failure(fmt::format("KvikIO: {}", text_));
    running_.push_back(slot);
    return true;
  }
  std::size_t poll(std::span<Completion> ended) override {
    std::erase_if(running_, [this](std::size_t slot) {
      int number = 0;
      if (!module_->ended(transfers_[slot], &slots_.bytes(slot), &number, text_)) return false;
      transfers_[slot] = nullptr;
      if (number < 0) throw Failure(fmt::format("KvikIO: {}", text_));
      slots_.end(slot, number);
      return true;
    });
    return slots_.poll(ended);
  }
  bool reopen() override {
    close();
    open();
    return true;
  }
  std::map<std::string, std::string> path() const override {
    return {{"mode", options_.compat == "on" ? "KvikIO by system calls" : "KvikIO by cuFile"}};
  }

 private:
  void open() {
    for (const File& file : named_) {
      void* const opened =
          module_->open(file.path.c_str(), operation_ == Operation::write, options_.compat.c_str(), text_);
      if (opened == nullptr) throw Failure(fmt::format("cannot open {} with KvikIO: {}", file.path, text_));
      files_.push_back(opened);
    }
  }
  void close() {
    for (void* const file : files_) module_->close(file);
    files_.clear();
  }

  const Module& module_ = Module::instance();
  KvikioOptions options_;
  std::span<const File> named_;
  Operation operation_;
  Slots slots_;
  std::vector<void*> files_;
  std::vector<void*> transfers_;      // indexed by slot; nullptr if none runs
  std::vector<std::size_t> running_;  // slots
  char text_[kFeedrateKvikioText] = {};
};

const EngineRegistration registered(
    "kvikio", {.description = "RAPIDS KvikIO, one task per block: the peer",
               .axes = own_axes_of_kvikio().list(),
               .unavailable = [] { return Module::instance().unavailable(); },
               .why_unsupported = [](const EnginePoint& point) -> std::string {
                 return point.device == "cuda" ? "" : "engine kvikio needs --device cuda";
               },
               .threads = [](const EnginePoint& point) { return own_axes_of_kvikio().of(point.own).threads; },
               .make = make_engine<Kvikio>});

}  // namespace
}  // namespace feedrate::storage
