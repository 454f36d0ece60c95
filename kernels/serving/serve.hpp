#pragma once
#include "kernels/serving/group.hpp"

namespace feedrate {

/// Reason why the functor rejects this particular message, according to its optional member `fault` or `rejects`.
template <class F>
FEEDRATE_HD Fault fault_of(const F& functor, const Header& header, const std::byte* payload, std::size_t bytes) {
  if constexpr (requires { functor.fault(header, payload, bytes); }) {
    return functor.fault(header, payload, bytes);
  } else if constexpr (requires { functor.rejects(payload, bytes); }) {
    return functor.rejects(payload, bytes) ? Fault::refused : Fault::none;
  } else {
    return Fault::none;
  }
}

/// Serves one message with one group: runs the functor and writes the result's header.
template <class F, class Group, class Recorder>
FEEDRATE_HD void serve_message(const F& functor, const Group& group, const std::byte* in, std::size_t in_stride,
                               std::byte* out, std::size_t out_stride, const Recorder& recorder) {
  Header header = *reinterpret_cast<const Header*>(in);
  const bool marked = group.rank() == 0 && recorder.samples(header.id);
  if (marked) recorder.begin(header.id);
  const std::size_t length = header.length;
  Fault fault = Fault::none;
  if (length > in_stride - sizeof(Header)) {
    fault = Fault::too_long;
  } else if (!F::accepts(length)) {
    fault = Fault::bad_length;
  } else if (F::result_bytes(length) > out_stride - sizeof(Header)) {
    fault = Fault::too_long;
  } else {
    fault = fault_of(functor, header, in + sizeof(Header), length);
  }
  if (fault == Fault::none) {
    const auto* payload = reinterpret_cast<const Vec16*>(in + sizeof(Header));
    header.checksum = group.sum(functor(group, payload, length, reinterpret_cast<Vec16*>(out + sizeof(Header))));
    header.length = static_cast<std::uint32_t>(F::result_bytes(length));
  } else {
    header.checksum = 0;
    header.length = kFailed | static_cast<std::uint32_t>(fault);
  }
  if (group.rank() == 0) *reinterpret_cast<Header*>(out) = header;
  if (marked) recorder.end(header.id);
}

}  // namespace feedrate
