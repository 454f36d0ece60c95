#include "libraries/tensors/store/arena.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include "libraries/tensors/errors.hpp"
#include "libraries/tensors/tensor.hpp"

namespace feedrate::tensors {
namespace {

std::size_t rounded(std::size_t bytes, std::size_t unit) { return (bytes + unit - 1) / unit * unit; }

}  // namespace

Place Arena::take(std::size_t bytes) {
  if (bytes == 0) return {};
  const std::size_t unit = memory_.granularity();
  if (bytes > sizes_.max_small) {
    if (bytes > limit_) {
      throw OutOfMemory(fmt::format("{} bytes are more than the {} that the store has in total", bytes, limit_));
    }
    const std::uint64_t number = add_chunk(rounded(bytes, unit), false);
    Owned& owned = chunks_.at(number);
    owned.taken = owned.memory->bytes();
    taken_ += owned.taken;
    return {number, 0, owned.taken};
  }
  const std::size_t wanted = rounded(bytes, kDataAlignment);
  auto found = by_size_.lower_bound({wanted, 0, 0});
  if (found == by_size_.end()) {
    // Near the limit, use a smaller chunk.
    const std::size_t most = std::max(left() / unit * unit, rounded(wanted, unit));
    add_chunk(std::min(rounded(sizes_.shared, unit), most), true);
    found = by_size_.lower_bound({wanted, 0, 0});
  }
  const Gap gap = *found;
  drop_gap(gap.chunk, gap.offset, gap.bytes);
  if (gap.bytes > wanted) add_gap(gap.chunk, gap.offset + wanted, gap.bytes - wanted);
  chunks_.at(gap.chunk).taken += wanted;
  taken_ += wanted;
  return {gap.chunk, gap.offset, wanted};
}

void Arena::give_back(const Place& place) {
  if (place.chunk == 0) return;
  Owned& owned = chunks_.at(place.chunk);
  owned.taken -= place.bytes;
  taken_ -= place.bytes;
  if (!owned.shared) {
    drop_chunk(place.chunk);
    return;
  }
  owned.memory->zero(place.offset, place.bytes);
  std::size_t offset = place.offset, bytes = place.bytes;
  const auto behind = owned.gaps.lower_bound(offset);
  if (behind != owned.gaps.begin()) {
    const auto [start, length] = *std::prev(behind);
    if (start + length == offset) {
      drop_gap(place.chunk, start, length);
      offset = start;
      bytes += length;
    }
  }
  if (const auto next = owned.gaps.find(place.offset + place.bytes); next != owned.gaps.end()) {
    const auto [start, length] = *next;
    drop_gap(place.chunk, start, length);
    bytes += length;
  }
  add_gap(place.chunk, offset, bytes);
  if (owned.taken == 0) trim();
}

void Arena::trim(bool keep_one) {
  std::vector<std::uint64_t> empty;
  bool kept = !keep_one;
  for (const auto& [number, owned] : chunks_) {
    if (!owned.shared || owned.taken != 0) continue;
    if (!kept || is_mapped_(number)) {
      kept = true;
    } else {
      empty.push_back(number);
    }
  }
  for (const std::uint64_t number : empty) drop_chunk(number);
}

std::uint64_t Arena::add_chunk(std::size_t bytes, bool shared) {
  if (bytes > left()) trim(false);
  if (bytes > left()) {
    throw OutOfMemory(
        fmt::format("{} more bytes would be above the limit of {}: chunks have {}, of which tensors use {}", bytes,
                    limit_, reserved_, taken_));
  }
  auto memory = memory_.make(bytes);
  const std::uint64_t number = ++last_;
  chunks_.emplace(number, Owned{std::move(memory), shared});
  reserved_ += bytes;
  if (shared) add_gap(number, 0, bytes);
  return number;
}

void Arena::add_gap(std::uint64_t number, std::size_t offset, std::size_t bytes) {
  chunks_.at(number).gaps.emplace(offset, bytes);
  by_size_.insert({bytes, number, offset});
}

void Arena::drop_gap(std::uint64_t number, std::size_t offset, std::size_t bytes) {
  chunks_.at(number).gaps.erase(offset);
  by_size_.erase({bytes, number, offset});
}

void Arena::drop_chunk(std::uint64_t number) {
  const auto found = chunks_.find(number);
  for (const auto& [offset, bytes] : found->second.gaps) by_size_.erase({bytes, number, offset});
  reserved_ -= found->second.memory->bytes();
  chunks_.erase(found);
}

}  // namespace feedrate::tensors
