#include "libraries/storage/files.hpp"
#include "libraries/storage/slots.hpp"
#include "variants/storage/engine.hpp"

namespace feedrate::storage {
namespace {

/// The simplest method: it reads a block into ordinary memory, then copies it, one block after another.
class Pread final : public Engine {
 public:
  explicit Pread(const EngineConfig& config)
      : operation_(config.operation),
        files_(config),
        staging_(config.device, 1, config.block, HostMemory::pageable),
        slots_(config.depth),
        stream_(config.device.stream()) {}

  bool submit(const Request& request) override {
    if (slots_.full()) return false;
    const std::size_t slot = slots_.take(request);
    std::byte* const host = staging_.slot(0);
    if (operation_ == Operation::write) {
      stream_->copy_to_host(host, request.device, request.bytes);
      stream_->synchronize();
    }
    const Completion moved =
        move_block(operation_, files_.descriptor(request.file, request.offset, request.bytes), host, request);
    if (operation_ == Operation::read) {
      stream_->copy_to_device(request.device, host, moved.bytes);
      stream_->synchronize();
    }
    slots_.bytes(slot) = moved.bytes;
    slots_.end(slot, moved.error);
    return true;
  }
  std::size_t poll(std::span<Completion> ended) override { return slots_.poll(ended); }
  bool reopen() override {
    files_.reopen();
    return true;
  }
  std::map<std::string, std::string> path() const override { return {{"mode", "pageable memory"}}; }

 private:
  Operation operation_;
  OpenFiles files_;
  Staging staging_;
  Slots slots_;
  std::unique_ptr<Stream> stream_;
};

const EngineRegistration registered("pread", {.description = "pread() into pageable memory, then a copy: the baseline",
                                              .make = make_engine<Pread>});

}  // namespace
}  // namespace feedrate::storage
