#pragma once
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "variants/feeding/transfer.hpp"
#include "variants/feeding/transfers/in_flight.hpp"

namespace feedrate {

/// Batches that go to the device together. A group is filled by `submit` and launched when it is full, or by `flush`;
/// each stream has one group under way or being filled. Batches come back in the order of submitting.
///
/// `Derived` has `add(Group&, const Batch&)`, which takes in the group's next batch, and `launch(Group&)`, which queues
/// all of it on the group's stream. `Own` is what it keeps with a group.
template <class Derived, class Own>
class Grouped : public Transfer {
 public:
  struct Options {
    unsigned streams = 4, coalesce = 0;
  };
  static constexpr unsigned kMostByItself = 64;  ///< of `coalesce` 0; `Derived` may have another
  static const Axes<Options>& axes() {
    static const auto kAxes = Axes<Options>()
                                  .number("streams", &Options::streams, {1, 128}, "device streams per worker")
                                  .number("coalesce", &Options::coalesce, {0, 256},
                                          "most batches that go to the device together; 0 = as many as make 256 KiB, 8 "
                                          "to 64 (graph: 8), if so many can be under way");
    return kAxes;
  }
  /// `batch_bytes`: of the messages of a full batch. `point`: null if it is not known.
  static unsigned coalesced(const Values& own, std::size_t batch_bytes, const Point* point) {
    constexpr std::size_t kTogether = std::size_t{256} << 10;  // 5 µs of the bus, the calls for it some 9 µs
    constexpr unsigned kLeast = 8;
    if (const unsigned given = axes().of(own).coalesce; given != 0) return given;
    const std::size_t wanted =
        std::clamp<std::size_t>(kTogether / std::max<std::size_t>(1, batch_bytes), kLeast, Derived::kMostByItself);
    // A group has room for no more batches than can be under way: a graph launches the chains without one all the same.
    const std::size_t most = point == nullptr ? wanted : std::max<std::size_t>(1, point->producers * point->window);
    return static_cast<unsigned>(std::min(wanted, most));
  }
  static unsigned coalesced(const Point& point) {
    return coalesced(point.own, point.batch * stride_of(point.payload), &point);
  }
  static unsigned depth(const Point& point) { return axes().of(point.own).streams * coalesced(point); }
  /// What a search for the best settings tries.
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
    std::size_t returned = 0;  ///< of the batches, once it is done
    Own own;
    std::unique_ptr<Stream> stream;  // destroyed first: it waits for work that uses all else
  };

  explicit Grouped(const TransferConfig& config)
      : config_(config), coalesce_(coalesced(config.own, config.most_messages * config.in_stride, config.point)) {
    groups_.resize(axes().of(config.own).streams);
    for (Group& group : groups_) {
      group.stream = config.device.stream();
      group.done = config.device.event();
      group.batches.reserve(coalesce_);
    }
  }
  /// The group's work is done, and nothing of it was given back yet.
  void finish(Group&) {}
  /// A group's messages in one pair of buffers, as one kernel takes them.
  BatchView all_of(const Group& group, std::size_t messages, const Buffer& in, const Buffer& out) const {
    Batch all = group.batches.front();
    all.in.count = all.out.count = messages;
    for (const Batch& batch : group.batches) {
      if (batch.timed) all.marks = batch.marks;
    }
    return view(in.data(), out.data(), all);
  }
  /// The most messages in a group.
  std::size_t most_messages() const { return coalesce_ * config_.most_messages; }

  TransferConfig config_;
  unsigned coalesce_;
  std::vector<Group> groups_;

 private:
  std::uint64_t begun_ = 0, ended_ = 0;  // groups
};

}  // namespace feedrate
