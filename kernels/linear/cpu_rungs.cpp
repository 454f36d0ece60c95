#include "kernels/linear/by_products.hpp"

/// The CPU's rungs of a linear layer: the CPU's rungs of the ladder matmul for its three products.
namespace feedrate::ladder::cpu_linear {
namespace {

LinearRung rung_of(const std::string& product, unsigned step, bool one_core, const char* changes, const char* reason) {
  const LinearParts parts{.forward = product, .input = product, .weight = product, .bias = sum_columns_by_threads};
  LinearRung rung = rung_of_parts(product,
                                  {.step = step,
                                   .device = "cpu",
                                   .one_core = one_core,
                                   .changes = changes,
                                   .reason = reason,
                                   .prediction = "as the rung of the ladder matmul with this name",
                                   .design = "rows=512 in-features=512 out-features=512"},
                                  parts, {Element::fp32});
  rung.unavailable = [product] { return MatmulRungs::instance().get("matmul rung", product).unavailable(); };
  return rung;
}

const LinearRegistration registered{
    {"cpu_naive", rung_of("cpu_naive", 1, true, "three products by the definition", "the baseline")},
    {"cpu_blocked", rung_of("cpu_blocked", 2, true, "products by blocks", "data are used again from the L1 cache")},
    {"cpu_vectorised",
     rung_of("cpu_vectorised", 3, true, "products by the widest vectors", "more sums per instruction")},
    {"cpu_packed",
     rung_of("cpu_packed", 4, true, "products from packed panels",
             "packing also turns the transposed operands of the gradients, so that all three products run "
             "at the same rate")},
    {"cpu_openmp", rung_of("cpu_openmp", 5, false, "products on all cores", "the cores' arithmetic adds up")}};

}  // namespace
}  // namespace feedrate::ladder::cpu_linear
