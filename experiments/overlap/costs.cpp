#include "experiments/overlap/costs.hpp"

#include <numeric>

#include "common/error.hpp"

namespace feedrate::overlap {

std::vector<std::string> balances() { return {"even", "first", "middle", "last", "rising"}; }

std::vector<double> spread_costs(const std::string& balance, double average_ns, std::size_t kernels) {
  constexpr double kHeavy = 3;  // cost of a heavy kernel relative to the others
  std::vector<double> shares(kernels, 1);
  if (balance == "first") {
    shares.front() = kHeavy;
  } else if (balance == "middle") {
    shares[kernels / 2] = kHeavy;
  } else if (balance == "last") {
    shares.back() = kHeavy;
  } else if (balance == "rising") {
    std::iota(shares.begin(), shares.end(), 1);
  } else if (balance != "even") {
    throw BadInput("--balance", balance, "even, first, middle, last, rising");
  }
  const double all = std::accumulate(shares.begin(), shares.end(), 0.0);
  for (double& share : shares) share *= average_ns * static_cast<double>(kernels) / all;
  return shares;
}

}  // namespace feedrate::overlap
