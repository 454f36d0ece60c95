#pragma once
#include <memory>

#include "common/device/device.hpp"

namespace feedrate::storage {

/// A place in a user's stream at which data is moved. Work that was queued on the stream before it has ended when the
/// gate is `reached`. If the gate holds, work that was queued after it waits until the gate is opened; the destructor
/// opens it. For use by one thread.
class Gate {
 public:
  virtual ~Gate() = default;
  virtual bool reached() = 0;
  virtual void open() = 0;
};

/// Makes gates. They must be destroyed before this object, whose destructor waits until all streams have passed theirs.
/// Any thread.
class Gates {
 public:
  virtual ~Gates() = default;
  /// Queues a gate on a stream (a cudaStream_t of the device). Throws Failure.
  virtual std::unique_ptr<Gate> on(void* stream, bool holds) = 0;
};

/// Throws BadInput for a device without streams.
std::unique_ptr<Gates> make_gates(Device&);

}  // namespace feedrate::storage
