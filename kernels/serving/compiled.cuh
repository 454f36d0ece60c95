#pragma once
#include "kernels/serving/batch.cuh"
#include "kernels/serving/by_address.hpp"
#include "kernels/serving/resident.cuh"

/// Wraps a functor that is compiled at run time. Run-time compilers compile this header and all its includes, so none
/// of these may include a host header.
namespace feedrate {

/// Converts a value to the type of its member. Values are passed as eight-byte types that Python supports.
template <class Member, class Value>
__device__ Member member(Value value) {
  if constexpr (requires { reinterpret_cast<Member>(value); }) {
    return reinterpret_cast<Member>(value);  // an address
  } else {
    return static_cast<Member>(value);
  }
}

/// F with defaults for the parts that it omits: without `accepts`, every length is accepted; without `result_bytes`, a
/// result is as long as its message; if the call returns nothing, there is no checksum. `Members` holds the values of
/// F's members and sets them with operator()(F&).
template <class F, class Members>
struct Compiled {
  Members members;

  __device__ F functor() const {
    F made{};
    members(made);
    return made;
  }
  __device__ static bool accepts(std::size_t bytes) {
    if constexpr (requires { F::accepts(bytes); }) return F::accepts(bytes);
    return true;
  }
  __device__ static std::size_t result_bytes(std::size_t bytes) {
    if constexpr (requires { F::result_bytes(bytes); }) {
      return F::result_bytes(bytes);
    } else {
      return bytes;
    }
  }
  __device__ Fault fault(const Header& header, const std::byte* payload, std::size_t bytes) const {
    return fault_of(functor(), header, payload, bytes);
  }
  template <class Group>
  __device__ std::uint32_t operator()(const Group& group, const Vec16* in, std::size_t bytes, Vec16* out) const {
    const F made = functor();
    if constexpr (requires { std::uint32_t{made(group, in, bytes, out)}; }) {
      return made(group, in, bytes, out);
    } else {
      made(group, in, bytes, out);
      return 0;
    }
  }
};

}  // namespace feedrate
