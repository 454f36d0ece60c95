#pragma once
#include <memory>
#include <string>

#include "variants/storage/nvme/controller.hpp"

namespace feedrate::storage::nvme {

/// Opens the controller at a PCI address, or returns the one that this process has open: VFIO opens a device once. It
/// is shut down when its last user releases it. Throws Failure.
std::shared_ptr<Controller> open_controller(const std::string& address);

}  // namespace feedrate::storage::nvme
