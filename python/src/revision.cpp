// The revision changes with every commit, and only this file must then be compiled again.
#include "generated/revision.hpp"

namespace feedrate::python {
const char* revision() { return FEEDRATE_REVISION; }
}  // namespace feedrate::python
