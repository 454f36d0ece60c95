#pragma once
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "experiments/harness/measure/experiment.hpp"

namespace feedrate {

/// What to look for from one point on.
struct Search {
  Values start;
  std::string goal;                            ///< a figure that is to be as high as it can
  double seconds = 0;                          ///< of wall-clock time
  std::vector<AxisValues> free;                ///< the first value of each is not special: `start` is
  std::function<bool(const Values&)> allowed;  ///< by the spec's constraints
};

/// A sweep, as its JSON file says:
///
///     { "name": …, "description": …, "experiment": …,                       feeding, when it says nothing
///       "run":   { "seconds", "warmup", "messages", "repetitions", "seed", "watchdog", "pin" },   the options' values
///       "parts": [ { "axes": { "queue": ["a", "b"], "payload": "pow2:6..20:2", "window": [1, 256] },
///                    "zip": [ ["window", "batch"] ],
///                    "constraints": [ … ],
///                    "search": { "goal": "messages_per_second", "seconds": 3, "axes": { "window": [16, 256] },
///                                "start": { "window": 16 } } } ],
///       "constraints": [ … ] }
///
/// Axes are crossed, except that those named together in `zip` step together. A constraint drops points:
///     { "if": { axis: values }, "then": { axis: values | { "min": …, "max": … } } }   where `if` may be left out
///     { "if": …, "product": [axis, axis], "max": … }                                  of numeric axes
/// A spec without `parts` is one part itself.
///
/// The points of a part with `search` are not measured: each is the start of a search for the best settings, and what
/// the search finds is measured like a point. It varies the axes of `search` and those that the point's queue and
/// transfer name (with the values of `search`, where it has them too), except those that the part itself fixes. It
/// begins at `start`, which joins the values of `search`, and elsewhere at the standard values; where a constraint
/// refuses that point, axes take their first values, those of `start` before others, until it is allowed.
struct Spec {
  std::string name, description;
  std::shared_ptr<const Kind> kind;  ///< the experiment
  Json document;                     ///< what was read, overrides included: goes into the results' directory
  std::vector<Values> points;        ///< in order, as written: not yet resolved for a device
  std::vector<Search> searches;
};

/// `overrides` are "axis=values" and replace that axis in every part. Throws BadInput naming the file and the key.
Spec load_spec(const std::filesystem::path& file, const std::vector<std::string>& overrides);

/// The same of a document; `where` names it in messages.
Spec parse_spec(Json document, const std::string& where, const std::vector<std::string>& overrides = {});

/// A spec by path, or by name from the folders where specs are kept. Throws BadInput listing the known names.
std::filesystem::path find_spec(const std::string& name_or_path);

}  // namespace feedrate
