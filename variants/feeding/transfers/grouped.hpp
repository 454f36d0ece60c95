#pragma once
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "variants/feeding/transfer.hpp"
#include "variants/feeding/transfers/in_flight.hpp"

namespace feedrate {

/// Base of transfers that send batches to the device in groups. `submit` fills a group, which is launched when it is
/// full or by `flush`. Each stream has one group that is in flight or being filled. Batches are returned in the order
/// in which they were submitted.
///
/// `Derived` has `add(Group&, const Batch&)`, which adds the group's next batch, and `launch(Group&)`, which queues the
/// group on its stream. `Own` is the data that `Derived` keeps per group.
template <class Derived, class Own>
class Grouped : public Transfer {
 public:
  struct Options {
    unsigned streams = 4, coalesce = 0;
  };
  static constexpr unsigned kMaxByItself = 64;  ///< maximum if `coalesce` is 0; `Derived` may define another
  static const Axes<Options>& axes() {
    static const auto kAxes = Axes<Options>()
                                  .number("streams", &Options::streams, {1, 128}, "device streams per worker")
                                  .number("coalesce", &Options::coalesce, {0, 256},
                                          "maximum batches that go to the device together; 0 = as many as make 256 "
                                          "KiB, 8 to 64 (graph: 8), limited by the messages in flight");
    return kAxes;
  }
  /// `batch_bytes`: bytes of the messages in a full batch. `point`: null if not known.
  static unsigned coalesced(const Values& own, std::size_t batch_bytes, const Point* point) {
    constexpr std::size_t kTogether = std::size_t{256} << 10;  // about 5 µs on the bus; the calls take about 9 µs
    constexpr unsigned kLeast = 8;
    if (const unsigned given = axes().of(own).coalesce; given != 0) return given;
    const std::size_t wanted =
        std::clamp<std::size_t>(kTogether / std::max<std::size_t>(1, batch_bytes), kLeast, Derived::kMaxByItself);
    // No larger than the number of batches that can be in flight: a graph also launches chains without a batch.
    const std::size_t most = point == nullptr ? wanted : std::max<std::size_t>(1, point->producers * point->window);
    return static_cast<unsigned>(std::min(wanted, most));
  }
  static unsigned coalesced(const Point& point) {
    return coalesced(point.own, point.batch * stride_of(point.payload), &point);
  }
  static unsigned depth(const Point& point) { return axes().of(point.own).streams * coalesced(point); }
  /// The values that a search for the best settings tries.
  static std::vector<AxisValues> search() {
    return {{"streams", {"1", "2", "4", "8"}},
            {"coalesce", {"0", "1", "4", "16", "64"}},
            {"block", {"128", "256", "512", "1024"}}};
  }

  bool submit(const Batch& batch) override {
    if (begun_ - ended_ == groups_.size()) return false;
    Group& group = groups_[begun_ % groups_.size()];
    static_cast<Derived*>(this)->add(group, batch);
    group.batches.push_back(batch);
    if (group.batches.size() == coalesce_) flush();
    return true;
  }
  Choices choices() const override { return {{"coalesce", std::to_string(coalesce_)}}; }
  void flush() override {
    if (begun_ - ended_ == groups_.size()) return;
    Group& group = groups_[begun_ % groups_.size()];
    if (group.batches.empty()) return;
    static_cast<Derived*>(this)->launch(group);
    group.stream->record(*group.done);
    ++begun_;
  }
  std::optional<Batch> poll() override {
    if (ended_ == begun_) return std::nullopt;
    Group& oldest = groups_[ended_ % groups_.size()];
    if (oldest.returned == 0) {
      if (!oldest.done->ready()) return std::nullopt;
      static_cast<Derived*>(this)->finish(oldest);
    }
    const Batch batch = oldest.batches[oldest.returned++];
    if (oldest.returned == oldest.batches.size()) {
      oldest.batches.clear();
      oldest.returned = 0;
      ++ended_;
    }
    return batch;
  }

 protected:
  struct Group {
    std::unique_ptr<Event> done;
    std::vector<Batch> batches;
    std::size_t returned = 0;  ///< number of batches returned, once the group is complete
    Own own;
    std::unique_ptr<Stream> stream;  // destroyed first: it waits for work that uses the other members
  };

  explicit Grouped(const TransferConfig& config)
      : config_(config), coalesce_(coalesced(config.own, config.max_messages * config.in_stride, config.point)) {
    groups_.resize(axes().of(config.own).streams);
    for (Group& group : groups_) {
      group.stream = config.device.stream();
      group.done = config.device.event();
      group.batches.reserve(coalesce_);
    }
  }
  /// Called when the group's work is complete and none of its batches has been returned yet.
  void finish(Group&) {}
  /// A view of all of a group's messages in one pair of buffers, for one kernel.
  BatchView all_of(const Group& group, std::size_t messages, const Buffer& in, const Buffer& out) const {
    Batch all = group.batches.front();
    all.in.count = all.out.count = messages;
    for (const Batch& batch : group.batches) {
      if (batch.timed) all.recorder = batch.recorder;
    }
    return view(in.data(), out.data(), all);
  }
  /// Maximum number of messages in a group.
  std::size_t max_messages() const { return coalesce_ * config_.max_messages; }

  TransferConfig config_;
  unsigned coalesce_;
  std::vector<Group> groups_;

 private:
  std::uint64_t begun_ = 0, ended_ = 0;  // groups
};

}  // namespace feedrate
