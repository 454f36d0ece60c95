#include "variants/storage/nvme/vfio.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/pci_regs.h>
#include <linux/vfio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include "common/error.hpp"
#include "variants/storage/nvme/prp.hpp"

namespace feedrate::storage::nvme {
namespace {

namespace fs = std::filesystem;
constexpr const char* kGroups = "/sys/kernel/iommu_groups";
constexpr const char* kContainer = "/dev/vfio/vfio";
constexpr const char* kNvmeClass = "0x010802";  // mass storage, non-volatile memory, NVMe
constexpr std::uint64_t kLargePage = std::uint64_t{2} << 20;
constexpr std::uint64_t kMessageInterrupts = 0xFEE0'0000;  // x86: addresses from here to 4 GiB are not memory

[[noreturn]] void fail(const std::string& device, const std::string& what, const std::string& hint = "") {
  throw Failure(fmt::format("{}: {}{}{}", device, what, hint.empty() ? "" : "; ", hint));
}
/// Calls ioctl(); throws Failure with the reason if it fails.
template <class Argument>
int checked(const std::string& device, int descriptor, unsigned long request, Argument argument, const char* what,
            const char* hint = "") {
  const int result = ::ioctl(descriptor, request, argument);
  if (result < 0) fail(device, fmt::format("{}: {}", what, std::strerror(errno)), hint);
  return result;
}
/// The name of the file that a link in sysfs leads to; empty if there is no link.
std::string link_name(const fs::path& link) {
  std::error_code error;
  const fs::path target = fs::read_symlink(link, error);
  return error ? "" : target.filename().string();
}
std::string first_word(const fs::path& file) {
  std::string word;
  std::ifstream(file) >> word;
  return word;
}

/// The ranges of bus addresses that a container's IOMMU translates. Throws Failure if the kernel's answer is invalid.
std::vector<BusRange> usable_ranges(const std::string& device, int container) {
  vfio_iommu_type1_info head{};
  head.argsz = sizeof head;
  checked(device, container, VFIO_IOMMU_GET_INFO, &head, "VFIO_IOMMU_GET_INFO");
  if ((head.flags & VFIO_IOMMU_INFO_PGSIZES) != 0 && (head.iova_pgsizes & kPage) == 0) {
    fail(device, "the IOMMU does not support pages of 4096 bytes");
  }
  std::vector<std::byte> answer(std::max<std::size_t>(head.argsz, sizeof head));
  head.argsz = static_cast<std::uint32_t>(answer.size());
  std::memcpy(answer.data(), &head, sizeof head);
  checked(device, container, VFIO_IOMMU_GET_INFO, answer.data(), "VFIO_IOMMU_GET_INFO");
  std::memcpy(&head, answer.data(), sizeof head);
  std::vector<BusRange> ranges;
  if ((head.flags & VFIO_IOMMU_INFO_CAPS) != 0) {
    vfio_info_cap_header header{};
    for (std::size_t at = head.cap_offset, seen = 0; at != 0 && seen < 64; at = header.next, ++seen) {
      if (at + sizeof header > answer.size()) fail(device, "VFIO_IOMMU_GET_INFO returned an invalid list");
      std::memcpy(&header, answer.data() + at, sizeof header);
      if (header.id != VFIO_IOMMU_TYPE1_INFO_CAP_IOVA_RANGE) continue;
      vfio_iommu_type1_info_cap_iova_range list{};
      if (at + sizeof list > answer.size()) fail(device, "VFIO_IOMMU_GET_INFO returned an invalid list");
      std::memcpy(&list, answer.data() + at, sizeof list);
      if (list.nr_iovas > (answer.size() - at - sizeof list) / sizeof(vfio_iova_range)) {
        fail(device, "VFIO_IOMMU_GET_INFO returned an invalid list");
      }
      for (std::size_t i = 0; i < list.nr_iovas; ++i) {
        vfio_iova_range range{};
        std::memcpy(&range, answer.data() + at + sizeof list + i * sizeof range, sizeof range);
        ranges.push_back({range.start, range.end});
      }
    }
  }
  if (ranges.empty()) ranges.push_back({0, kMessageInterrupts - 1});  // kernels before 5.4
  return ranges;
}

}  // namespace

bool is_pci_address(const std::string& text) {
  constexpr std::string_view kForm = "xxxx:xx:xx.x";
  if (text.size() != kForm.size()) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool fits = kForm[i] == 'x' ? std::isxdigit(static_cast<unsigned char>(text[i])) != 0 : text[i] == kForm[i];
    if (!fits) return false;
  }
  return true;
}

std::string why_no_vfio() {
#if !defined(__x86_64__)
  return "the order of stores to memory and to the device is known only for x86-64";
#endif
  std::error_code error;
  if (!fs::exists(kGroups, error) || fs::is_empty(kGroups, error)) {
    return "the machine has no IOMMU groups; enable the IOMMU in its firmware and with intel_iommu=on or amd_iommu=on";
  }
  if (!fs::exists(kContainer, error)) return "/dev/vfio/vfio does not exist; run `modprobe vfio-pci`";
  if (::access(kContainer, R_OK | W_OK) != 0) return fmt::format("{}: {}", kContainer, std::strerror(errno));
  for (const auto& entry : fs::directory_iterator("/dev/vfio", error)) {
    if (entry.path() != kContainer && entry.path().filename() != "devices") return "";
  }
  return "no device is bound to vfio-pci (variants/storage/nvme/README.md explains how to bind one)";
}

VfioPort::VfioPort(const std::string& address) : address_(address) {
  open_container();
  open_group();
  open_device();
}

VfioPort::~VfioPort() {
  if (registers_ != nullptr) ::munmap(registers_, register_bytes_);
}

void VfioPort::open_container() {
  if (!is_pci_address(address_)) fail(address_, "not a PCI address", "use a form such as 0000:00:04.0");
  const fs::path device = fs::path("/sys/bus/pci/devices") / address_;
  if (!fs::exists(device)) fail(address_, "no such PCI device", "`lspci -D` lists the devices");
  if (const std::string found = first_word(device / "class"); found != kNvmeClass) {
    fail(address_, fmt::format("not an NVMe controller (class {})", found));
  }
  if (const std::string driver = link_name(device / "driver"); driver != "vfio-pci") {
    fail(address_, driver.empty() ? "no driver is bound to it" : "its driver is " + driver,
         "bind it to vfio-pci as variants/storage/nvme/README.md explains; its contents will be overwritten");
  }
  if (link_name(device / "iommu_group").empty()) {
    fail(address_, "it is in no IOMMU group",
         "enable the IOMMU in the machine's firmware and with intel_iommu=on or amd_iommu=on");
  }
  container_ = Descriptor(kContainer, O_RDWR);
  if (checked(address_, container_.get(), VFIO_GET_API_VERSION, 0, "VFIO_GET_API_VERSION") != VFIO_API_VERSION) {
    fail(address_, "this kernel has another version of VFIO");
  }
  if (checked(address_, container_.get(), VFIO_CHECK_EXTENSION, VFIO_TYPE1v2_IOMMU, "VFIO_CHECK_EXTENSION") == 0) {
    fail(address_, "VFIO does not support this IOMMU (type 1, version 2)", "run `modprobe vfio_iommu_type1`");
  }
}

void VfioPort::open_group() {
  const std::string number = link_name(fs::path("/sys/bus/pci/devices") / address_ / "iommu_group"),
                    path = "/dev/vfio/" + number;
  const int group = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (group < 0) {
    const int error = errno;
    fail(address_, fmt::format("cannot open {}: {}", path, std::strerror(error)),
         error == EBUSY                      ? "another process uses the device"
         : error == EACCES || error == EPERM ? "run as root, or give yourself the file with chown"
                                             : "");
  }
  group_ = Descriptor::adopt(group);
  vfio_group_status status{};
  status.argsz = sizeof status;
  checked(address_, group, VFIO_GROUP_GET_STATUS, &status, "VFIO_GROUP_GET_STATUS");
  if ((status.flags & VFIO_GROUP_FLAGS_VIABLE) == 0) {
    fail(address_, fmt::format("other devices of its IOMMU group ({}/{}) have drivers", kGroups, number),
         "bind them to vfio-pci too, or use another slot");
  }
  const int container = container_.get();
  checked(address_, group, VFIO_GROUP_SET_CONTAINER, &container, "VFIO_GROUP_SET_CONTAINER");
  checked(address_, container, VFIO_SET_IOMMU, VFIO_TYPE1v2_IOMMU, "VFIO_SET_IOMMU",
          "if interrupt remapping is missing, see allow_unsafe_interrupts of vfio_iommu_type1");
  addresses_.emplace(usable_ranges(address_, container));
}

void VfioPort::open_device() {
  device_ = Descriptor::adopt(
      checked(address_, group_.get(), VFIO_GROUP_GET_DEVICE_FD, address_.c_str(), "VFIO_GROUP_GET_DEVICE_FD"));
  vfio_device_info device{};
  device.argsz = sizeof device;
  checked(address_, device_.get(), VFIO_DEVICE_GET_INFO, &device, "VFIO_DEVICE_GET_INFO");
  if (device.num_regions <= VFIO_PCI_CONFIG_REGION_INDEX) fail(address_, "VFIO reports no PCI regions");
  if ((device.flags & VFIO_DEVICE_FLAGS_RESET) != 0) {
    checked(address_, device_.get(), VFIO_DEVICE_RESET, 0, "VFIO_DEVICE_RESET");
  }
  vfio_region_info region{};
  region.argsz = sizeof region;
  region.index = VFIO_PCI_CONFIG_REGION_INDEX;
  checked(address_, device_.get(), VFIO_DEVICE_GET_REGION_INFO, &region, "VFIO_DEVICE_GET_REGION_INFO");
  config_offset_ = region.offset;
  region = {};
  region.argsz = sizeof region;
  region.index = VFIO_PCI_BAR0_REGION_INDEX;
  checked(address_, device_.get(), VFIO_DEVICE_GET_REGION_INFO, &region, "VFIO_DEVICE_GET_REGION_INFO");
  if ((region.flags & VFIO_REGION_INFO_FLAG_MMAP) == 0 || region.size < kDoorbells + kPage) {
    fail(address_, fmt::format("its registers ({} bytes) cannot be mapped", region.size));
  }
  void* const data = ::mmap(nullptr, region.size, PROT_READ | PROT_WRITE, MAP_SHARED, device_.get(),
                            static_cast<off_t>(region.offset));
  if (data == MAP_FAILED) fail(address_, fmt::format("cannot map its registers: {}", std::strerror(errno)));
  registers_ = static_cast<std::byte*>(data);
  register_bytes_ = region.size;
}

void VfioPort::set_bus_master(bool on) {
  std::uint16_t command = 0;
  const auto offset = static_cast<off_t>(config_offset_ + PCI_COMMAND);
  bool done = ::pread(device_.get(), &command, sizeof command, offset) == sizeof command;
  const auto bit = static_cast<std::uint16_t>(PCI_COMMAND_MASTER);
  command = static_cast<std::uint16_t>((on ? command | bit : command & ~bit) | PCI_COMMAND_MEMORY);
  done = done && ::pwrite(device_.get(), &command, sizeof command, offset) == sizeof command;
  if (!done) fail(address_, "cannot change its PCI command register");
}

std::uint64_t VfioPort::map(std::byte* data, std::size_t bytes) {
  std::uint64_t bus = 0;
  {
    const std::lock_guard lock(mutex_);
    bus = addresses_->take(bytes, bytes >= kLargePage ? kLargePage : kPage);
  }
  if (bus == 0) fail(address_, fmt::format("the IOMMU has no {} bytes of addresses left", bytes));
  vfio_iommu_type1_dma_map request{};
  request.argsz = sizeof request;
  request.flags = VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE;
  request.vaddr = reinterpret_cast<std::uintptr_t>(data);
  request.iova = bus;
  request.size = bytes;
  if (::ioctl(container_.get(), VFIO_IOMMU_MAP_DMA, &request) < 0) {
    const int error = errno;
    {
      const std::lock_guard lock(mutex_);
      addresses_->give_back(bus);
    }
    fail(address_, fmt::format("cannot map {} bytes for the device: {}", bytes, std::strerror(error)),
         error == ENOMEM ? "raise `ulimit -l`, or choose a smaller --block or --depth" : "");
  }
  return bus;
}

void VfioPort::unmap(std::uint64_t bus, std::size_t bytes) noexcept {
  vfio_iommu_type1_dma_unmap request{};
  request.argsz = sizeof request;
  request.iova = bus;
  request.size = bytes;
  if (::ioctl(container_.get(), VFIO_IOMMU_UNMAP_DMA, &request) < 0) return;  // closing the container unmaps it
  const std::lock_guard lock(mutex_);
  addresses_->give_back(bus);
}

}  // namespace feedrate::storage::nvme
