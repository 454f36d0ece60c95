#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "experiments/session.hpp"

namespace feedrate {

/// A sweep, as its JSON file says:
///
///     { "name": …, "description": …,
///       "run":   { "seconds", "warmup", "messages", "repetitions", "seed", "watchdog", "pin" },   the options' values
///       "parts": [ { "axes": { "queue": ["a", "b"], "payload": "pow2:6..20:2", "window": [1, 256] },
///                    "zip": [ ["window", "batch"] ],
///                    "constraints": [ … ] } ],
///       "constraints": [ … ] }
///
/// Axes are crossed, except that those named together in `zip` step together. A constraint drops points:
///     { "if": { axis: values }, "then": { axis: values | { "min": …, "max": … } } }   where `if` may be left out
///     { "if": …, "product": [axis, axis], "max": … }                                  of numeric axes
/// A spec without `parts` is one part itself.
struct Spec {
  std::string name, description;
  Json document;              ///< what was read, overrides included: goes into the results' directory
  std::vector<Point> points;  ///< in order, as written: not yet resolved for a device
};

/// `overrides` are "axis=values" and replace that axis in every part. Throws BadInput naming the file and the key.
Spec load_spec(const std::filesystem::path& file, const std::vector<std::string>& overrides);

/// A spec by path, or by name from the folders where specs are kept. Throws BadInput listing the known names.
std::filesystem::path find_spec(const std::string& name_or_path);

}  // namespace feedrate
