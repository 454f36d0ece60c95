#pragma once
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "libraries/storage/descriptor.hpp"
#include "variants/storage/nvme/bus_addresses.hpp"
#include "variants/storage/nvme/port.hpp"

namespace feedrate::storage::nvme {

/// Whether a string is a PCI address such as "0000:00:04.0".
bool is_pci_address(const std::string&);

/// Why no device can be used through VFIO on this machine; empty if one could be.
std::string why_no_vfio();

/// A PCI function bound to vfio-pci, opened through Linux's VFIO (linux/vfio.h): its IOMMU group in a container of its
/// own, BAR 0 mapped, memory mapped for the device by the IOMMU. The function is reset on opening and on closing.
class VfioPort final : public Port {
 public:
  /// `address`: of an NVMe controller. Throws Failure, which names the device and what to do.
  explicit VfioPort(const std::string& address);
  ~VfioPort() override;
  VfioPort(const VfioPort&) = delete;
  VfioPort& operator=(const VfioPort&) = delete;

  const std::string& name() const override { return address_; }
  std::span<std::byte> registers() override { return {registers_, register_bytes_}; }
  void set_bus_master(bool) override;
  std::uint64_t map(std::byte* data, std::size_t bytes) override;
  void unmap(std::uint64_t bus, std::size_t bytes) noexcept override;

 private:
  void open_container();
  void open_group();
  void open_device();
  std::string address_;
  Descriptor container_, group_, device_;
  std::uint64_t config_offset_ = 0;  // of the PCI configuration space in `device_`
  std::byte* registers_ = nullptr;
  std::size_t register_bytes_ = 0;
  std::mutex mutex_;  // of addresses_
  std::optional<BusAddresses> addresses_;
};

}  // namespace feedrate::storage::nvme
