#include "libraries/storage/kinds.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace feedrate::storage {

unsigned Kinds::add(Kind kind) {
  const auto invalid = [&](const std::string& what, const std::string& value, const std::string& allowed) {
    return BadInput(fmt::format("{} of kind '{}'", what, kind.name), value, allowed);
  };
  if (kind.start > source_bytes_) {
    throw invalid("start", std::to_string(kind.start), fmt::format("0 to {}, the bytes of the source", source_bytes_));
  }
  const std::uint64_t left = source_bytes_ - kind.start;
  std::uint64_t records = 0;
  if (kind.record_bytes != 0 && !kind.offsets.empty()) {
    throw invalid("offsets", fmt::format("{} offsets", kind.offsets.size()), "none if record_bytes is given");
  }
  if (kind.record_bytes != 0) {
    if (kind.bytes == Kind::kToTheEnd) kind.bytes = left / kind.record_bytes * kind.record_bytes;
    if (kind.bytes > left) {
      throw invalid("bytes", std::to_string(kind.bytes), fmt::format("at most {}, up to the end of the source", left));
    }
    if (kind.bytes % kind.record_bytes != 0) {
      throw invalid("bytes", std::to_string(kind.bytes),
                    fmt::format("a multiple of {}, the record's size", kind.record_bytes));
    }
    records = kind.bytes / kind.record_bytes;
  } else {
    if (kind.offsets.empty()) throw invalid("record_bytes", "0", "a size, or offsets of variable records");
    if (const auto down = std::ranges::is_sorted_until(kind.offsets); down != kind.offsets.end()) {
      throw invalid(fmt::format("offset {}", down - kind.offsets.begin()), std::to_string(*down),
                    "at least the one before it");
    }
    if (kind.offsets.back() > left) {
      throw invalid("the last offset", std::to_string(kind.offsets.back()),
                    fmt::format("at most {}, up to the end of the source", left));
    }
    records = kind.offsets.size() - 1;
  }
  const std::lock_guard lock(mutex_);
  if (!kind.name.empty() && std::ranges::any_of(known_, [&](const Known& one) { return one.kind.name == kind.name; })) {
    throw BadInput("kind", kind.name, "a name that no other kind of the source has");
  }
  known_.push_back({std::move(kind), records});
  return static_cast<unsigned>(known_.size() - 1);
}

unsigned Kinds::find(std::string_view name) const {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find_if(known_, [&](const Known& one) { return one.kind.name == name; });
  if (found == known_.end() || name.empty())
    throw BadInput("kind", std::string(name), "the name of a kind of the source");
  return static_cast<unsigned>(found - known_.begin());
}

const Kinds::Known& Kinds::at(unsigned kind) const {
  const std::lock_guard lock(mutex_);
  if (kind >= known_.size()) {
    throw BadInput(
        "kind", std::to_string(kind),
        known_.empty() ? "none, because the source has no kinds yet" : fmt::format("0 to {}", known_.size() - 1));
  }
  return known_[kind];
}

std::uint64_t Kinds::records(unsigned kind) const { return at(kind).records; }

Extent Kinds::extent(unsigned kind, std::uint64_t first, std::uint64_t count) const {
  const Known& known = at(kind);
  if (first > known.records || count > known.records - first) {
    throw BadInput(fmt::format("records of kind {}", name_of(kind)), fmt::format("{} from {}", count, first),
                   fmt::format("at most {} records from 0 on", known.records));
  }
  const auto offset = [&](std::uint64_t record) {
    return known.kind.start +
           (known.kind.record_bytes != 0 ? record * known.kind.record_bytes : known.kind.offsets[record]);
  };
  return {offset(first), offset(first + count) - offset(first), nullptr, kind};
}

std::string Kinds::name_of(unsigned kind) const {
  const std::string& name = at(kind).kind.name;
  return name.empty() ? std::to_string(kind) : fmt::format("'{}'", name);
}

std::string Kinds::text(const Extent& extent, std::uint64_t at_byte) const {
  if (extent.kind == kNone) return "";
  const Known& known = at(extent.kind);
  const std::uint64_t from_start = at_byte - known.kind.start;
  const auto record = known.kind.record_bytes != 0
                          ? from_start / known.kind.record_bytes
                          : static_cast<std::uint64_t>(std::ranges::upper_bound(known.kind.offsets, from_start) -
                                                       known.kind.offsets.begin() - 1);
  return fmt::format("record {} of kind {}", record, name_of(extent.kind));
}

}  // namespace feedrate::storage
