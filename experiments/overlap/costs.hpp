#pragma once
#include <string>
#include <vector>

namespace feedrate::overlap {

/// Names of the ways to distribute a pipeline's cost over its kernels.
std::vector<std::string> balances();

/// Cost of each of `kernels` kernels, with the average `average_ns`. Throws BadInput for an unknown balance.
std::vector<double> spread_costs(const std::string& balance, double average_ns, std::size_t kernels);

}  // namespace feedrate::overlap
