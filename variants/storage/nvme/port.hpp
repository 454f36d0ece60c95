#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

namespace feedrate::storage::nvme {

/// How the driver reaches a controller: its registers, and memory that it can access. VfioPort is the real one.
class Port {
 public:
  virtual ~Port() = default;
  /// Name of the device in messages, such as its PCI address.
  virtual const std::string& name() const = 0;
  /// The registers (BAR 0), mapped.
  virtual std::span<std::byte> registers() = 0;
  /// Allows or forbids the device to access memory. Throws Failure.
  virtual void set_bus_master(bool) = 0;
  /// Makes page-aligned memory accessible to the device; returns its bus address, which is page-aligned. Throws
  /// Failure. May be called by several threads.
  virtual std::uint64_t map(std::byte* data, std::size_t bytes) = 0;
  /// Ends the device's access to memory mapped by map().
  virtual void unmap(std::uint64_t bus, std::size_t bytes) noexcept = 0;
};

/// Memory of the caller that a device can access.
class DmaMapping {
 public:
  DmaMapping() = default;
  /// `data` is page-aligned. Neither the port nor the memory may be freed before the mapping. Throws Failure.
  DmaMapping(Port& port, std::span<std::byte> data)
      : port_(&port), bytes_(data.size()), bus_(port.map(data.data(), data.size())) {}
  DmaMapping(DmaMapping&& other) noexcept { swap(other); }
  DmaMapping& operator=(DmaMapping&& other) noexcept {
    swap(other);
    return *this;
  }
  DmaMapping(const DmaMapping&) = delete;
  DmaMapping& operator=(const DmaMapping&) = delete;
  ~DmaMapping() {
    if (port_ != nullptr) port_->unmap(bus_, bytes_);
  }
  std::uint64_t bus() const { return bus_; }

 private:
  void swap(DmaMapping& other) noexcept {
    std::swap(port_, other.port_);
    std::swap(bytes_, other.bytes_);
    std::swap(bus_, other.bus_);
  }
  Port* port_ = nullptr;
  std::size_t bytes_ = 0;
  std::uint64_t bus_ = 0;
};

/// Zeroed, page-aligned memory that a device can access.
class DmaMemory {
 public:
  DmaMemory() = default;
  /// Rounds `bytes` up to pages. The port must outlive the memory. Throws Failure.
  DmaMemory(Port&, std::size_t bytes);
  DmaMemory(DmaMemory&& other) noexcept : data_(std::exchange(other.data_, {})), mapping_(std::move(other.mapping_)) {}
  DmaMemory& operator=(DmaMemory&& other) noexcept {
    std::swap(data_, other.data_);
    mapping_ = std::move(other.mapping_);
    return *this;
  }
  DmaMemory(const DmaMemory&) = delete;
  DmaMemory& operator=(const DmaMemory&) = delete;
  ~DmaMemory();
  std::byte* data() const { return data_.data(); }
  std::size_t size() const { return data_.size(); }
  std::uint64_t bus() const { return mapping_.bus(); }

 private:
  std::span<std::byte> data_;
  DmaMapping mapping_;
};

}  // namespace feedrate::storage::nvme
