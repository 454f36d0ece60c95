#pragma once
#include <unordered_set>
#include <vector>

#include "common/payload/pool.hpp"
#include "kernels/workload.hpp"

namespace feedrate {

/// Messages of which the host touches little, so that what carries them is measured and not the host's memory. Behind
/// the first `kStampBytes` of the payload, the stamp, all messages are alike: that rest is written when a slot is first
/// used and then stays in place, so a message costs a header and a stamp. Of each result the header, the stamp's part
/// and the checksum are compared, and the checksum is the device's own, over every byte of the result.
///
/// One of `kSampledOneOf` messages, chosen by a hash so that they take any slot, is written whole with bytes of its own
/// and compared whole with its own expected bytes. A byte behind the stamp that is lost or wrong on the way back shows
/// in these alone.
class Stamped final : public Payloads {
 public:
  static constexpr std::size_t kStampBytes = 64;
  static constexpr std::uint64_t kSampledOneOf = 64;

  /// What messages of this size are made of: stamps with the rest behind them, and their results. Takes as long as
  /// Workload::prepare, which must have been called.
  static PayloadPool pool_of(const Workload&, std::size_t payload);
  static bool sampled(std::uint64_t seed, std::uint64_t id) {
    return mix64(mix64(seed ^ mix64(id))) % kSampledOneOf == 0;
  }

  /// For one load of so many producers: the slots that it fills are its own, and keep what was written.
  Stamped(const Workload&, const PayloadPool&, unsigned producers);
  std::string how_checked(std::size_t payload) const override;
  void fill(std::uint64_t seed, std::uint64_t first_id, std::size_t payload, Messages) const override;
  Checked check(std::uint64_t seed, std::size_t payload, ConstMessages results, std::uint64_t* ids) const override;
  void answer(std::uint64_t seed, std::uint64_t first_id, std::size_t payload, Messages results) const override;
  std::string difference(std::uint64_t seed, std::uint64_t id, std::size_t payload,
                         const ConstMessages& result) const override;

 private:
  struct alignas(128) Slots {
    std::unordered_set<const std::byte*> with_rest;  // the rest is in place
  };
  std::size_t entry_of(std::uint64_t seed, std::uint64_t id) const {
    return PayloadPool::entry_of(seed, id) % pool_.entries();
  }
  bool is_result_of(std::uint64_t seed, std::uint64_t id, std::size_t payload, const ConstMessages& result) const;

  const Workload& workload_;
  const PayloadPool& pool_;
  mutable std::vector<Slots> slots_;  // by producer, whose thread alone fills them
};

}  // namespace feedrate
