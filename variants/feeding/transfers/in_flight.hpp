#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "variants/feeding/transfer.hpp"

namespace feedrate {

/// Batches in flight over several streams, returned in order: batch k uses stream k modulo the number of streams, so
/// consecutive batches overlap and each stream has a second batch queued behind the first.
class InFlight {
 public:
  static constexpr unsigned kBatchesPerStream = 2;
  struct Options {
    unsigned streams = 4;
  };
  /// The axes of transfers that use this class.
  static const Axes<Options>& axes() {
    static const auto kAxes =
        Axes<Options>().number("streams", &Options::streams, {1, 128}, "device streams per worker");
    return kAxes;
  }
  static unsigned depth_of(unsigned streams) { return streams * kBatchesPerStream; }
  static unsigned depth(const Point& point) { return depth_of(axes().of(point.own).streams); }
  /// The values that a search for the best settings tries.
  static std::vector<AxisValues> search() {
    return {{"streams", {"1", "2", "4", "8"}}, {"block", {"128", "256", "512", "1024"}}};
  }

  struct Place {
    Stream* stream = nullptr;
    std::unique_ptr<Event> done;
    std::unique_ptr<Event> copied_in, copied_out;  ///< for timed batches, if the transfer copies
    Batch batch;
    Buffer in, out;  ///< device memory, if the transfer needs it
  };

  /// Options for each place: buffers for a full batch in device memory, and events for the end of copies.
  struct Needs {
    bool buffers = false, copies = false;
  };
  InFlight(const TransferConfig& config, const Needs& needs)
      : InFlight(config, needs, axes().of(config.own).streams, depth_of(axes().of(config.own).streams)) {}
  InFlight(const TransferConfig& config, const Needs& needs, unsigned streams, std::size_t places) : places_(places) {
    for (unsigned s = 0; s < streams; ++s) streams_.push_back(config.device.stream());
    for (std::size_t i = 0; i < places_.size(); ++i) {
      places_[i].stream = streams_[i % streams].get();
      places_[i].done = config.device.event();
      if (needs.copies) {
        places_[i].copied_in = config.device.event(true);
        places_[i].copied_out = config.device.event(true);
      }
      if (!needs.buffers) continue;
      places_[i].in = config.device.allocate_device(config.max_messages * config.in_stride);
      places_[i].out = config.device.allocate_device(config.max_messages * config.out_stride);
    }
  }
  /// Returns the next place, or nullptr if all are busy. Queue the work on its stream, then call `begin`.
  Place* free_place() { return begun_ - ended_ == places_.size() ? nullptr : &places_[begun_ % places_.size()]; }
  /// Call this before `begin`, after queueing the copy of the messages to the device.
  void copied_in(Place& place, const Batch& batch) {
    if (batch.timed) place.stream->record(*place.copied_in);
  }
  void begin(Place& place, const Batch& batch) {
    place.batch = batch;
    if (batch.timed && place.copied_out) place.stream->record(*place.copied_out);
    place.stream->record(*place.done);
    ++begun_;
  }
  std::optional<Batch> poll() {
    if (ended_ == begun_) return std::nullopt;
    Place& oldest = places_[ended_ % places_.size()];
    if (!oldest.done->ready()) return std::nullopt;
    ++ended_;
    Batch& batch = oldest.batch;
    if (batch.timed && oldest.copied_in) {
      batch.copied_in = oldest.copied_in->ready_ns();
      batch.copied_out = oldest.copied_out->ready_ns();
    }
    return batch;
  }

 private:
  std::vector<Place> places_;
  std::vector<std::unique_ptr<Stream>>
      streams_;  // destroyed first: their destructors wait for work that uses the places
  std::uint64_t begun_ = 0, ended_ = 0;
};

/// Base of transfers that queue all work of a batch on one stream.
class StreamedTransfer : public Transfer {
 public:
  bool submit(const Batch& batch) final {
    auto* place = in_flight_.free_place();
    if (place == nullptr) return false;
    queue(*place, batch);
    in_flight_.begin(*place, batch);
    return true;
  }
  std::optional<Batch> poll() final { return in_flight_.poll(); }

 protected:
  StreamedTransfer(const TransferConfig& config, const InFlight::Needs& needs)
      : config_(config), in_flight_(config, needs) {}
  virtual void queue(InFlight::Place&, const Batch&) = 0;

  TransferConfig config_;
  InFlight in_flight_;
};

inline BatchView view(const std::byte* in, std::byte* out, const Batch& batch) {
  return {in,
          out,
          static_cast<std::uint32_t>(batch.in.stride),
          static_cast<std::uint32_t>(batch.out.stride),
          static_cast<std::uint32_t>(batch.in.count),
          batch.recorder};
}

}  // namespace feedrate
