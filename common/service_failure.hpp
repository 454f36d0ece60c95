#pragma once
#include "common/error.hpp"

namespace feedrate {

/// A lost service, or an error reply from it.
struct FEEDRATE_EXPORT ServiceFailure : Failure {
  using Failure::Failure;
  /// Whether the cause is the connection or the state of the service (full, a replica, changed permissions), and not
  /// the request, such as a particular task. With another connection, or later, the failure may be over.
  bool of_the_service = true;
};

}  // namespace feedrate
