#pragma once
#include <string>

#include "kernels/storage/nvme.hpp"

namespace feedrate::storage::nvme {

/// A status in words, such as "LBA out of range (0x080)".
std::string describe(Status);

/// The errno value that a file would report for a failed command; 0 for a successful one.
int error_of(Status);

}  // namespace feedrate::storage::nvme
