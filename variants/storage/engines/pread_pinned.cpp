#include "libraries/storage/copies.hpp"
#include "libraries/storage/files.hpp"
#include "libraries/storage/slots.hpp"
#include "variants/storage/engine.hpp"

namespace feedrate::storage {
namespace {

struct PreadPinnedOptions {
  unsigned streams = 2;
};
const Axes<PreadPinnedOptions>& own_axes_of_pread_pinned() {
  static const auto kAxes =
      Axes<PreadPinnedOptions>().number("streams", &PreadPinnedOptions::streams, {1, 32}, kStreamsHelp);
  return kAxes;
}

/// Reads a block into a slot of pinned memory while the copy engine moves earlier ones.
class PreadPinned final : public Engine {
 public:
  explicit PreadPinned(const PointConfig& config)
      : operation_(config.operation),
        files_(config),
        staging_(config.device, config.depth, config.block),
        slots_(config.depth),
        copies_(config.device, own_axes_of_pread_pinned().of(config.own).streams, direction_of(config.operation)) {}

  bool submit(const Request& request) override {
    if (slots_.full()) return false;
    const std::size_t slot = slots_.take(request);
    if (operation_ == Operation::write) {
      copies_.add(request, staging_.slot(slot), request.bytes, slot);
    } else if (const int error = move(slot); error != 0 || slots_.bytes(slot) == 0) {
      slots_.end(slot, error);
    } else {
      copies_.add(request, staging_.slot(slot), slots_.bytes(slot), slot);
    }
    copies_.start();
    return true;
  }
  std::size_t poll(std::span<Completion> ended) override {
    copies_.poll([&](std::size_t slot) { slots_.end(slot, operation_ == Operation::write ? move(slot) : 0); });
    return slots_.poll(ended);
  }
  bool reopen() override {
    files_.reopen();
    return true;
  }
  std::map<std::string, std::string> path() const override { return {{"mode", "pinned memory"}}; }

 private:
  int move(std::size_t slot) {
    const Request& request = slots_.at(slot);
    const int descriptor = files_.descriptor(request.file, request.offset, request.bytes);
    const Completion moved = move_block(operation_, descriptor, staging_.slot(slot), request);
    slots_.bytes(slot) = moved.bytes;
    return moved.error;
  }

  Operation operation_;
  OpenFiles files_;
  Staging staging_;
  Slots slots_;
  Copies copies_;
};

const EngineRegistration registered("pread_pinned",
                                    {.description = "pread() into pinned memory while earlier blocks are copied",
                                     .axes = own_axes_of_pread_pinned().list(),
                                     .make = make_engine<PreadPinned>});

}  // namespace
}  // namespace feedrate::storage
