#pragma once
#include "common/error.hpp"

namespace feedrate {

/// A service was lost, or answered with an error.
struct FEEDRATE_EXPORT ServiceFailure : Failure {
  using Failure::Failure;
  /// Whether the cause is the connection or the state of the service (full, a replica, changed permissions), and not
  /// what it was asked, such as one task: with another connection, or later, it may be over.
  bool of_the_service = true;
};

}  // namespace feedrate
