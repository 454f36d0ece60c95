#pragma once
#include <unordered_set>
#include <vector>

#include "common/payload/pool.hpp"
#include "kernels/workload.hpp"

namespace feedrate {

/// The host touches only a few bytes of each message, so that the transport is measured rather than the host's memory.
/// The first `kStampBytes` of the payload are the stamp. The rest is identical in all messages: it is written when a
/// slot is first used and stays in place, so a message costs a header and a stamp. For each result, the host compares
/// the header, the result of the stamp, and the checksum, which the device computes over every byte of the result.
///
/// One in `kSampledOneOf` messages, chosen by a hash so that it can occupy any slot, is written in full with its own
/// bytes and compared in full with its own expected bytes. Only these messages reveal a byte after the stamp that is
/// lost or wrong on the way back.
class Stamped final : public Payloads {
 public:
  static constexpr std::size_t kStampBytes = 64;
  static constexpr std::uint64_t kSampledOneOf = 64;

  /// Pool for messages of this size: stamps followed by the rest, and their results. Takes as long as
  /// Workload::prepare, which must have been called before.
  static PayloadPool pool_of(const Workload&, std::size_t payload);
  static bool sampled(std::uint64_t seed, std::uint64_t id) {
    return mix64(mix64(seed ^ mix64(id))) % kSampledOneOf == 0;
  }

  /// For one load with this number of producers. It remembers which slots already hold the rest.
  Stamped(const Workload&, const PayloadPool&, unsigned producers);
  std::string how_checked(std::size_t payload) const override;
  void fill(std::uint64_t seed, std::uint64_t first_id, std::size_t payload, Messages) const override;
  Checked check(std::uint64_t seed, std::size_t payload, ConstMessages results, std::uint64_t* ids) const override;
  void answer(std::uint64_t seed, std::uint64_t first_id, std::size_t payload, Messages results) const override;
  std::string difference(std::uint64_t seed, std::uint64_t id, std::size_t payload,
                         const ConstMessages& result) const override;

 private:
  struct alignas(128) Slots {
    std::unordered_set<const std::byte*> with_rest;  // slots in which the rest is in place
  };
  std::size_t entry_of(std::uint64_t seed, std::uint64_t id) const {
    return PayloadPool::entry_of(seed, id) % pool_.entries();
  }
  bool is_result_of(std::uint64_t seed, std::uint64_t id, std::size_t payload, const ConstMessages& result) const;

  const Workload& workload_;
  const PayloadPool& pool_;
  mutable std::vector<Slots> slots_;  // indexed by producer; only its thread fills them
};

}  // namespace feedrate
