#pragma once

namespace feedrate {
/// Schema version of the rows that this program writes (common/results/row.schema.json).
inline constexpr int kRowSchemaVersion = 3;
}  // namespace feedrate
