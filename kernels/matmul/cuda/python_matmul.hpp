#pragma once
#include "kernels/matmul/matmul.hpp"

namespace feedrate::ladder {

/// A peer in Python, which needs PyTorch and `package`. Its module has the class
///     Peer(dtype, left_transposed, right_transposed)
/// with the method queue(stream, left, right, result), which takes the address of the stream and a Memory per matrix.
MatmulRung python_matmul(const std::string& module, const std::string& package, const std::string& changes,
                         std::function<std::string(const MatmulShape&, const DeviceInfo&)> why_unsupported);

}  // namespace feedrate::ladder
