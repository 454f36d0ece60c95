// The revision changes with every commit. Only this file is compiled again then.
#include "generated/revision.hpp"

namespace feedrate::python {
const char* revision() { return FEEDRATE_REVISION; }
}  // namespace feedrate::python
