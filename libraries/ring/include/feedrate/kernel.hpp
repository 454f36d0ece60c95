#pragma once
/// What a functor of yours needs to become the work of a GpuRing: `KernelOf<F>` is a Kernel. For example, every 32-bit
/// word plus `step`:
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
/// Make it in a .cu file that nvcc compiles, for sm_80 or later: then it works on both devices. Made in a .cpp file, it
/// works on the CPU device alone. One functor must not be made in both kinds of file. The parts of a functor are
/// described at KernelOf. `KernelOf<ByAddress<F>>` works on what its messages, Addresses, point to.
#include "kernels/serving/by_address.hpp"
#include "kernels/serving/kernel_of.hpp"
