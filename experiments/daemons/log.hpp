#pragma once

namespace feedrate {

/// From now on each line of the log is a JSON object: `time` (ISO 8601, UTC), `level`, `process`, `message`.
void log_as_json();

}  // namespace feedrate
