#pragma once
#include <numeric>
#include <span>
#include <string>

#include "common/message/message.hpp"
#include "common/payload/runs.hpp"

namespace feedrate {

/// How the driver makes messages and knows their results. Payloads follow from a seed and the message's id alone, so
/// any thread can make a payload again and check its result without having kept it.
class Payloads {
 public:
  virtual ~Payloads() = default;
  /// In a few words, for the row.
  virtual std::string how_checked(std::size_t payload) const = 0;
  /// Writes the payload and the header of every message; ids count up from `first_id`.
  virtual void fill(std::uint64_t seed, std::uint64_t first_id, std::size_t payload, Messages) const = 0;
  /// Whether all `results` are what the reference makes of the messages whose ids they carry. Ids that do not count up
  /// are left in `ids`, as many as there are results. What it says of ids is what was compared, and so can be counted
  /// whatever becomes of the slots. Looks at every result even when an earlier one is wrong.
  virtual Checked check(std::uint64_t seed, std::size_t payload, ConstMessages results, std::uint64_t* ids) const = 0;
  /// Writes the results that `check` finds right, of messages whose ids count up from `first_id`.
  virtual void answer(std::uint64_t seed, std::uint64_t first_id, std::size_t payload, Messages results) const = 0;
  /// How `result`, the first of these, differs from what the reference makes of the message `id`, in a few words.
  virtual std::string difference(std::uint64_t seed, std::uint64_t id, std::size_t payload,
                                 const ConstMessages& result) const = 0;
  /// Whether `result`, the first of these, is that of the message `id`.
  bool matches(std::uint64_t seed, std::uint64_t id, std::size_t payload, const ConstMessages& result) const {
    std::uint64_t found = 0;
    const Checked checked = check(seed, payload, result.first(1), &found);
    return checked.right && (checked.consecutive ? checked.first_id : found) == id;
  }
};

/// Payloads::check by `right(i, id)`, which is asked of every result.
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

/// Payloads::difference from these bytes.
std::string difference_from(std::span<const std::byte> expected, const ConstMessages& result);

}  // namespace feedrate
