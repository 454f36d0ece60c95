#pragma once
#include <string>
#include <vector>

namespace feedrate::overlap {

/// How a pipeline's cost may be spread over its kernels.
std::vector<std::string> balances();

/// The cost of each of `kernels` kernels, `average_ns` on average. Throws BadInput for an unknown balance.
std::vector<double> spread_costs(const std::string& balance, double average_ns, std::size_t kernels);

}  // namespace feedrate::overlap
