#pragma once
#include <numeric>
#include <span>
#include <string>

#include "common/message/message.hpp"
#include "common/payload/runs.hpp"

namespace feedrate {

/// Generates the load generator's messages and checks their results. A payload depends only on a seed and the message's
/// id, so any thread can regenerate it and check its result without having stored the payload.
class Payloads {
 public:
  virtual ~Payloads() = default;
  /// A short description of the check, for the row.
  virtual std::string how_checked(std::size_t payload) const = 0;
  /// Writes the payload and the header of every message; ids are consecutive, starting at `first_id`.
  virtual void fill(std::uint64_t seed, std::uint64_t first_id, std::size_t payload, Messages) const = 0;
  /// Checks that each of `results` equals the reference's result for the message whose id it carries. If the ids are
  /// not consecutive, writes them to `ids`, one per result. The returned ids are those that were compared, so they can
  /// be counted even if the slots change later. Checks every result, even if an earlier one is wrong.
  virtual Checked check(std::uint64_t seed, std::size_t payload, ConstMessages results, std::uint64_t* ids) const = 0;
  /// Writes correct results, as accepted by `check`, for messages with consecutive ids starting at `first_id`.
  virtual void answer(std::uint64_t seed, std::uint64_t first_id, std::size_t payload, Messages results) const = 0;
  /// Describes briefly how the first message of `result` differs from the reference's result for message `id`.
  virtual std::string difference(std::uint64_t seed, std::uint64_t id, std::size_t payload,
                                 const ConstMessages& result) const = 0;
  /// Whether the first message of `result` is the correct result of message `id`.
  bool matches(std::uint64_t seed, std::uint64_t id, std::size_t payload, const ConstMessages& result) const {
    std::uint64_t found = 0;
    const Checked checked = check(seed, payload, result.first(1), &found);
    return checked.right && (checked.consecutive ? checked.first_id : found) == id;
  }
};

/// Implements Payloads::check with `right(i, id)`, which is called for every result.
template <class Right>
Checked check_each(const ConstMessages& results, std::uint64_t* ids, Right&& right) {
  Checked checked{true, true, 0};
  for (std::size_t i = 0; i < results.count; ++i) {
    const std::uint64_t id = results.header(i).id;
    if (i == 0) checked.first_id = id;
    if (checked.consecutive && id != checked.first_id + i) {
      checked.consecutive = false;
      std::iota(ids, ids + i, checked.first_id);
    }
    if (!checked.consecutive) ids[i] = id;
    checked.right &= right(i, id);
  }
  return checked;
}

/// Implements Payloads::difference, given the expected bytes.
std::string difference_from(std::span<const std::byte> expected, const ConstMessages& result);

}  // namespace feedrate
