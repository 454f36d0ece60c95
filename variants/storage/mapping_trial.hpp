#pragma once
#include <string>

#include "variants/storage/engine.hpp"

namespace feedrate::storage {

/// Why the mapping of a file should not be registered with a GPU here; empty if it can be. On some kernels the driver
/// never returns from registering a mapped file, and such a process cannot even be killed. A child process therefore
/// tries it first, with a time limit, once per file system.
std::string why_not_registered(const File&, int descriptor);

/// Registers the file at descriptor kOwnSocket with a GPU and compares bytes that the GPU copies from the mapping.
/// Runs in the child process; returns its exit code.
int try_registration();

}  // namespace feedrate::storage
