#pragma once
#include "variants/handoff/handoff.hpp"

/// Host memory that both processes map, with one copy to it and one copy from it.
namespace feedrate::handoff {

template <bool kPinned>
class ShmExporter final : public Exporter {
 public:
  explicit ShmExporter(const Config& config)
      : device_(config.device),
        bytes_(config.setting.bytes),
        memory_(config.device, bytes_),
        stream_(config.device.stream()) {}

  std::byte* create(unsigned tensor) override {
    auto chunk = host_->make(bytes_);
    Buffer pin = kPinned ? device_.pin(chunk->data(), bytes_) : Buffer();
    shared_.insert_or_assign(tensor, Shared{std::move(chunk), std::move(pin)});
    return memory_.of(tensor);
  }
  Ticket ticket(unsigned tensor) override { return shared_.at(tensor).chunk->handle(); }
  void offer(unsigned tensor) override {
    stream_->copy_to_host(shared_.at(tensor).chunk->data(), memory_.of(tensor), bytes_);
    stream_->synchronize();
  }
  void destroy(unsigned tensor) override {
    shared_.erase(tensor);
    memory_.drop(tensor);
  }

 private:
  struct Shared {
    std::unique_ptr<tensors::Chunk> chunk;
    Buffer pin;  // destroyed first
  };
  Device& device_;
  std::size_t bytes_;
  std::unique_ptr<tensors::ChunkMemory> host_ = tensors::memfd_memory();
  OwnMemory memory_;
  std::map<unsigned, Shared> shared_;
  std::unique_ptr<Stream> stream_;
};

template <bool kPinned>
class ShmImporter final : public Importer {
 public:
  explicit ShmImporter(const Config& config)
      : device_(config.device), bytes_(config.setting.bytes), memory_(config.device, bytes_) {}

  void open(unsigned tensor, std::string_view, tensors::Descriptor descriptor) override {
    auto mapping = tensors::memfd_memory()->map(std::move(descriptor), "", bytes_);
    Buffer pin = kPinned ? device_.pin(static_cast<std::byte*>(mapping->data()), bytes_) : Buffer();
    shared_.insert_or_assign(tensor, Shared{std::move(mapping), std::move(pin)});
  }
  const std::byte* take(unsigned tensor, Stream& stream) override {
    std::byte* const own = memory_.of(tensor);
    stream.copy_to_device(own, static_cast<const std::byte*>(shared_.at(tensor).mapping->data()), bytes_);
    return own;
  }
  void close(unsigned tensor) override {
    shared_.erase(tensor);
    memory_.drop(tensor);
  }

 private:
  struct Shared {
    std::unique_ptr<tensors::Mapping> mapping;
    Buffer pin;  // destroyed first
  };
  Device& device_;
  std::size_t bytes_;
  OwnMemory memory_;
  std::map<unsigned, Shared> shared_;
};

}  // namespace feedrate::handoff
