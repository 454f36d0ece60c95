#include "common/error.hpp"
#include "libraries/storage/gate.hpp"

namespace feedrate::storage {

std::unique_ptr<Gates> make_gates(Device&) {
  throw BadInput("stream", "a stream", "none, because the device has no streams");
}

}  // namespace feedrate::storage
