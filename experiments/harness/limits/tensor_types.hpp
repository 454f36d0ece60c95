#pragma once

namespace feedrate {

/// Operands of tensor cores. Floats are summed in single precision, integers in 32 bits, doubles in doubles.
enum class TensorType { f8, f16, bf16, tf32, f64, i8 };

/// Operations per second of the current GPU's tensor cores by warpgroup instructions, with which GPUs of compute
/// capability 9.0 reach their peak rate; a multiply-add is two operations. Throws Failure if the sums are wrong. Not
/// for f64.
double wgmma_operations_per_second(TensorType, unsigned processors);

}  // namespace feedrate
