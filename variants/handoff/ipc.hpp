#pragma once
#include <fmt/format.h>

#include "common/error.hpp"
#include "variants/handoff/handoff.hpp"

/// Memory that both processes map, so that no bytes move: one chunk per tensor, in the tensor store's kinds of memory.
namespace feedrate::handoff {

inline std::string gpu_name(unsigned index) { return fmt::format("cuda:{}", index); }

/// Size of a chunk that holds `bytes` bytes.
inline std::size_t chunk_bytes(const tensors::ChunkMemory& memory, std::size_t bytes) {
  const std::size_t unit = memory.granularity();
  return (bytes + unit - 1) / unit * unit;
}

/// `Way` has a static function memory(setting, user) that returns the kind of memory; the GPU `user` accesses it.
template <class Way>
class IpcExporter final : public Exporter {
 public:
  explicit IpcExporter(const Config& config)
      : bytes_(config.setting.bytes), memory_(Way::memory(config.setting, config.setting.exporter_gpu)) {}

  std::byte* create(unsigned tensor) override {
    auto& chunk = chunks_[tensor] = memory_->make(chunk_bytes(*memory_, bytes_));
    return chunk->data();
  }
  Ticket ticket(unsigned tensor) override { return chunks_.at(tensor)->handle(); }
  void destroy(unsigned tensor) override { chunks_.erase(tensor); }

 private:
  std::size_t bytes_;
  std::unique_ptr<tensors::ChunkMemory> memory_;
  std::map<unsigned, std::unique_ptr<tensors::Chunk>> chunks_;
};

template <class Way>
class IpcImporter final : public Importer {
 public:
  explicit IpcImporter(const Config& config)
      : bytes_(config.setting.bytes),
        memory_(Way::memory(config.setting, config.setting.importer_gpu)),
        copies_(config) {}

  void open(unsigned tensor, std::string_view ticket, tensors::Descriptor descriptor) override {
    mapped_[tensor] = memory_->map(std::move(descriptor), ticket, chunk_bytes(*memory_, bytes_));
  }
  const std::byte* take(unsigned tensor, Stream& stream) override {
    return copies_.reached(tensor, static_cast<const std::byte*>(mapped_.at(tensor)->data()), stream);
  }
  void close(unsigned tensor) override {
    mapped_.erase(tensor);
    copies_.drop(tensor);
  }

 private:
  std::size_t bytes_;
  std::unique_ptr<tensors::ChunkMemory> memory_;
  PeerCopies copies_;
  std::map<unsigned, std::unique_ptr<tensors::Mapping>> mapped_;
};

template <class Way>
Entry ipc_entry(const char* description) {
  return {.description = description,
          .copies = {},
          .why_unsupported = Way::why_unsupported,
          .exporter = make<Exporter, IpcExporter<Way>>,
          .importer = make<Importer, IpcImporter<Way>>};
}

/// A GPU's memory, shared in one of the ways of gpu_ways().
template <const char* kWay>
struct GpuIpc {
  static std::unique_ptr<tensors::ChunkMemory> memory(const Setting& setting, unsigned user) {
    return tensors::gpu_memory(kWay, gpu_name(setting.exporter_gpu), gpu_name(user));
  }
  static std::string why_unsupported(const Setting& setting) {
    return setting.device == "cuda" ? "" : "it shares a GPU's memory";
  }
};

}  // namespace feedrate::handoff
