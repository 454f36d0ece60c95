// The revision changes with every commit. It has its own file, so only this file is compiled again.
#include "generated/revision.hpp"

namespace feedrate::python {
const char* revision() { return FEEDRATE_REVISION; }
}  // namespace feedrate::python
