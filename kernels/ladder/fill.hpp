#pragma once
#include "common/device/device.hpp"
#include "kernels/ladder/matrix.hpp"

namespace feedrate::ladder {

/// Fills the elements of the matrices and changes no other memory.
void fill(Stream&, const Matrix&, Inputs, std::uint64_t seed);

/// Adds the number of elements that differ from what fill() wrote to `changed`, a word of pinned host memory.
void count_different(Stream&, const Matrix&, Inputs, std::uint64_t seed, std::uint64_t* changed);

/// Byte of poisoned memory. Elements of all types made of these bytes are NaN, so that a read of memory that belongs to
/// no matrix cannot go unnoticed (0 × NaN is NaN).
inline constexpr unsigned char kNanByte = 0xFF;

/// Device memory of matrices, with guard bands on both sides, all poisoned with NaN.
class MatrixMemory {
 public:
  static constexpr std::size_t kGuard = 1024;  // bytes; keeps the alignment that TMA and vector loads need
  MatrixMemory() = default;
  MatrixMemory(Device& device, const Matrix& matrix)
      : memory_(device.allocate_device(matrix.bytes() + 2 * kGuard)), matrix_(matrix) {
    matrix_.data = memory_.data() + kGuard;
  }
  const Matrix& matrix() const { return matrix_; }
  void poison(Stream& stream) const { stream.fill(memory_.data(), kNanByte, memory_.size()); }
  const Buffer& memory() const { return memory_; }

 private:
  Buffer memory_;
  Matrix matrix_;
};

/// Counts the bytes of poisoned memory that belong to no element of the matrix and were written. `changed` is a word of
/// pinned host memory, to which the number is added.
void count_changed(Stream&, const MatrixMemory&, std::uint64_t* changed);

}  // namespace feedrate::ladder
