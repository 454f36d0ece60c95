#pragma once

namespace feedrate {

/// Makes each further line of the log a JSON object with `time` (ISO 8601, UTC), `level`, `process` and `message`.
void log_as_json();

}  // namespace feedrate
