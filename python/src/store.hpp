#pragma once
#include <nanobind/nanobind.h>

namespace feedrate::python {

/// Adds the classes of the tensor store, Store and StoreTensor. feedrate/tensors.py wraps them in the public API.
void bind_store(nanobind::module_& m);

}  // namespace feedrate::python
