#include "libraries/storage/plan.hpp"

#include <algorithm>
#include <utility>

#include "libraries/storage/files.hpp"

namespace feedrate::storage {
namespace {

/// A part of an extent, which lies in one file and is at most a block long.
struct Part {
  unsigned file;
  std::uint64_t offset;
  std::size_t bytes;
  std::byte* place;
  std::size_t extent;
};

/// Cuts an extent at the ends of files and, so that all parts but its ends are aligned, at multiples of the block.
void cut(const Extent& extent, std::size_t number, std::span<const std::uint64_t> begins, std::size_t block,
         std::vector<Part>& parts) {
  for (std::uint64_t done = 0; done < extent.bytes;) {
    const std::uint64_t at = extent.start + done;
    // The last file that begins here or before; empty files before it hold nothing.
    const auto after = std::ranges::upper_bound(begins.first(begins.size() - 1), at);
    const auto file = static_cast<unsigned>(after - begins.begin() - 1);
    const std::uint64_t offset = at - begins[file], left = extent.bytes - done;
    const std::uint64_t until =
        std::min({begins[file + 1] - begins[file], (offset / block + 1) * block, offset + left});
    parts.push_back({file, offset, until - offset, extent.place + done, number});
    done += until - offset;
  }
}

}  // namespace

Plan plan_of(std::vector<Extent> extents, std::span<const std::uint64_t> begins, const PlanRules& rules) {
  std::vector<Part> parts;
  for (std::size_t i = 0; i < extents.size(); ++i) cut(extents[i], i, begins, rules.block, parts);
  std::ranges::stable_sort(parts, [](const Part& one, const Part& other) {
    return std::pair(one.file, one.offset) < std::pair(other.file, other.offset);
  });
  Plan plan;
  for (const Part& part : parts) {
    const std::uint64_t file_bytes = begins[part.file + 1] - begins[part.file];
    const std::uint64_t begin = part.offset / rules.alignment * rules.alignment;
    const std::uint64_t end = std::min(file_bytes, rounded_up(part.offset + part.bytes, rules.alignment));
    const bool joins = !plan.runs.empty() && plan.runs.back().file == part.file &&
                       part.offset <= plan.runs.back().offset + plan.runs.back().bytes + rules.gap &&
                       end - plan.runs.back().offset <= rules.block;
    if (!joins) plan.runs.push_back({part.file, begin, 0, plan.pieces.size(), 0});
    Run& run = plan.runs.back();
    run.bytes = std::max<std::size_t>(run.bytes, end - run.offset);
    ++run.pieces;
    plan.pieces.push_back({static_cast<std::size_t>(part.offset - run.offset), part.bytes, part.place});
    plan.of.push_back(part.extent);
  }
  plan.extents = std::move(extents);
  return plan;
}

}  // namespace feedrate::storage
