// Reads DLPack's capsules, for feedrate/products.py.
#include <nanobind/nanobind.h>

#include <cstdint>

namespace nb = nanobind;
using namespace nb::literals;

namespace feedrate::python {
namespace {

/// A tensor as DLPack's capsules hold it (dlpack.h, version 0.8).
struct DlTensor {
  void* data;
  std::int32_t device_type, device_index, dimensions;
  std::uint8_t code, bits;  // of the element type
  std::uint16_t lanes;
  std::int64_t *shape, *strides;  // `strides` may be null: contiguous
  std::uint64_t offset;           // of the first element, in bytes
};

/// Returns (address, shape, strides in elements, type code, bits, device type, device index). The capsule keeps the
/// tensor's memory, and remains its owner's.
nb::tuple described(nb::handle capsule) {
  const auto* const tensor = static_cast<const DlTensor*>(PyCapsule_GetPointer(capsule.ptr(), "dltensor"));
  if (tensor == nullptr) throw nb::python_error();
  nb::list shape, strides;
  std::int64_t inner = 1;
  for (std::int32_t i = 0; i < tensor->dimensions; ++i) shape.append(tensor->shape[i]);
  for (std::int32_t i = tensor->dimensions; i-- > 0; inner *= tensor->shape[i]) {
    strides.insert(0, tensor->strides == nullptr ? inner : tensor->strides[i]);
  }
  return nb::make_tuple(reinterpret_cast<std::uintptr_t>(tensor->data) + tensor->offset, nb::tuple(shape),
                        nb::tuple(strides), tensor->code, tensor->lanes == 1 ? tensor->bits : 0, tensor->device_type,
                        tensor->device_index);
}

}  // namespace

void bind_dlpack(nb::module_& m) { m.def("described", &described, "capsule"_a); }

}  // namespace feedrate::python
