#pragma once
/// Turns your functor into the work of a GpuRing: `KernelOf<F>` is a Kernel. This example adds `step` to every 32-bit
/// word:
///
///     struct Add {
///       std::uint32_t step = 1;
///       static FEEDRATE_HD bool accepts(std::size_t bytes) { return bytes % 16 == 0; }
///       static FEEDRATE_HD std::size_t result_bytes(std::size_t bytes) { return bytes; }
///       template <class Group>
///       FEEDRATE_HD std::uint32_t operator()(const Group& group, const feedrate::Vec16* in, std::size_t bytes,
///                                            feedrate::Vec16* out) const {
///         for (std::size_t i = group.rank(); i < bytes / 16; i += group.size()) {
///           for (unsigned w = 0; w < 4; ++w) out[i].word[w] = in[i].word[w] + step;
///         }
///         return 0;
///       }
///     };
///     std::unique_ptr<feedrate::Kernel> make_work() { return std::make_unique<feedrate::KernelOf<Add>>(Add{2}); }
///
/// Instantiated in a .cu file that nvcc compiles for sm_80 or later, it works on both devices; instantiated in a .cpp
/// file, it works only on the CPU device. Do not instantiate the same functor in both kinds of file. KernelOf documents
/// the parts of a functor. `KernelOf<ByAddress<F>>` takes messages of type Addresses and works on the memory that they
/// point to.
#include "kernels/serving/by_address.hpp"
#include "kernels/serving/kernel_of.hpp"
