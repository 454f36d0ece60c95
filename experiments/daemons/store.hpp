#pragma once
#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace feedrate {

/// Options of `feedrate store serve`.
struct StoreServiceOptions {
  std::string socket, group;
  std::string device = "cpu", share = "vmm";
  std::string memory = "1Gi", quota = "0";
  std::size_t max_tensors = 1'000'000, max_leases = 1'000'000, max_connections = 1024;
  std::string redis, prefix, list = "tensor_lifecycle";
  std::string metrics, log = "text";
  bool supervise = false;
  pid_t parent = 0;  ///< 0: any parent
};

/// Serves until SIGINT or SIGTERM. Returns the exit code. Throws BadInput, Failure.
int serve_store(const StoreServiceOptions&, const std::vector<std::string>& arguments);

}  // namespace feedrate
