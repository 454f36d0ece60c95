#pragma once
#include <nanobind/nanobind.h>

namespace feedrate::python {

/// Adds the tensor store's classes: Store and StoreTensor. feedrate/tensors.py gives them their public shape.
void bind_store(nanobind::module_& m);

}  // namespace feedrate::python
