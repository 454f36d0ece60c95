#pragma once

namespace feedrate {

/// Operand types of tensor cores. Floats are accumulated in single precision, integers in 32 bits, doubles in double
/// precision.
enum class TensorType { f8, f16, bf16, tf32, f64, i8 };

/// Operations per second of the current GPU's tensor cores with warpgroup instructions, which GPUs of compute
/// capability 9.0 need to reach their peak rate. A multiply-add is two operations. Throws Failure if the sums are
/// wrong. Not for f64.
double wgmma_operations_per_second(TensorType, unsigned processors);

}  // namespace feedrate
