#pragma once

namespace feedrate {
/// Of the rows that this program writes (common/results/row.schema.json).
inline constexpr int kRowSchemaVersion = 3;
}  // namespace feedrate
