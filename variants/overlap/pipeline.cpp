#include "variants/overlap/pipeline.hpp"

#include <fmt/format.h>

#include <cstring>

#include "common/error.hpp"

namespace feedrate {
namespace {

StageKind kind_of(StageRole role) {
  if (role == StageRole::generate) return StageKind::generate;
  return role == StageRole::reduce ? StageKind::reduce : StageKind::transform;
}

/// The combined effect of all stages on a word.
Affine map_of(const PipelineShape& shape) {
  Affine map;
  for (unsigned s = 0; s < shape.stages.size(); ++s) {
    if (!is_copy(shape.stages[s].role)) map = map.then(stage_map(s, shape.rounds[s]));
  }
  return map;
}

ItemHeader header_at(const std::byte* item) {
  ItemHeader header{};
  std::memcpy(&header, item, sizeof header);
  return header;
}

}  // namespace

Pipeline::Pipeline(PipelineShape shape, Device& device, EarlyKernels early)
    : shape_(std::move(shape)),
      host_sources_(device.allocate_host(shape_.items * source_bytes(), HostMemory::pinned)),
      host_results_(device.allocate_host(shape_.items * result_bytes(), HostMemory::pinned)),
      stream_(device.stream()),
      sums_(shape_.words, map_of(shape_)) {
  for (unsigned s = 0; s < stages(); ++s) {
    const bool copies = is_copy(stage(s).role);
    kernels_.push_back({copies ? StageWork{} : work(s), shape_.blocks, early == EarlyKernels::wait});
  }
  if (!brings_items()) sources_ = device.allocate_device(shape_.items * source_bytes());
  if (!fetches_items()) results_ = device.allocate_device(shape_.items * result_bytes());
}

StageWork Pipeline::work(unsigned s) const { return {kind_of(stage(s).role), s, shape_.rounds[s], shape_.words}; }

const std::byte* Pipeline::source(unsigned item) const {
  return (brings_items() ? host_sources_ : sources_).data() + item * source_bytes();
}

std::byte* Pipeline::result(unsigned item) const {
  return (fetches_items() ? host_results_ : results_).data() + item * result_bytes();
}

void Pipeline::begin(unsigned items) {
  if (items > shape_.items)
    throw Failure(fmt::format("{} items are more than the {} of the pipeline", items, shape_.items));
  first_id_ += items_;
  items_ = items;
  for (unsigned i = 0; i < items; ++i) {
    std::byte* const source = host_sources_.data() + i * source_bytes();
    const std::uint64_t id = first_id_ + i;
    std::memcpy(source, &id, sizeof id);
    if (!brings_items()) continue;
    auto* const words = reinterpret_cast<std::uint64_t*>(source + sizeof(ItemHeader));
    for (std::uint64_t w = 0, word = item_base(id); w < shape_.words; ++w, word += kItemStep) words[w] = word;
  }
  std::memset(host_results_.data(), 0, items * result_bytes());
  if (!brings_items()) stream_->copy_to_device(sources_.data(), host_sources_.data(), items * source_bytes());
  if (!fetches_items()) stream_->copy_to_device(results_.data(), host_results_.data(), items * result_bytes());
  stream_->synchronize();
}

void Pipeline::enqueue(Stream& stream, unsigned s, const std::byte* in, std::byte* out, bool early) const {
  switch (stage(s).role) {
    case StageRole::copy_in:
      return stream.copy_to_device(out, in, bytes());
    case StageRole::copy_out:
      return stream.copy_to_host(out, in, bytes());
    default: {
      const StageLaunch launch = kernels_[s].on(in, out);
      early ? stream.launch_early(launch) : stream.launch(launch);
    }
  }
}

Graph::Node Pipeline::add(Graph& graph, unsigned s, const std::byte* in, std::byte* out,
                          std::span<const Graph::Node> after) const {
  switch (stage(s).role) {
    case StageRole::copy_in:
      return graph.add({out, in, bytes()}, Direction::to_device, after);
    case StageRole::copy_out:
      return graph.add({out, in, bytes()}, Direction::to_host, after);
    default:
      return graph.add(kernels_[s].on(in, out), after);
  }
}

std::uint64_t Pipeline::words_sum(const std::byte* item) const {
  const auto* const words = reinterpret_cast<const std::uint64_t*>(item + sizeof(ItemHeader));
  std::uint64_t sum = 0;
  for (std::uint64_t w = 0; w < shape_.words; ++w) sum += words[w] * weight_of(w);
  return sum;
}

Pipeline::Verdict Pipeline::verify() {
  if (!fetches_items()) {
    stream_->copy_to_host(host_results_.data(), results_.data(), items_ * result_bytes());
    stream_->synchronize();
  }
  Verdict verdict;
  for (unsigned i = 0; i < items_; ++i) {
    const std::byte* const found = host_results_.data() + i * result_bytes();
    const std::uint64_t id = first_id_ + i, found_id = header_at(found).id;
    const std::uint64_t sum = fetches_items() ? words_sum(found) : header_at(found).sum;
    if (found_id == id && sum == sums_(id)) continue;
    if (verdict.wrong++ == 0) {
      verdict.first = fmt::format("item {} has id {} and checksum {:016x}, expected {} and {:016x}", i, found_id, sum,
                                  id, sums_(id));
    }
  }
  return verdict;
}

}  // namespace feedrate
