#pragma once
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "experiments/harness/measure/experiment.hpp"

namespace feedrate {

/// A search for the best settings, starting at one point.
struct Search {
  Values start;
  std::string goal;    ///< the figure to maximize
  double seconds = 0;  ///< wall-clock budget
  std::vector<AxisValues>
      free;  ///< searched axes with their values; the search begins at `start`, not at the first values
  std::function<bool(const Values&)> allowed;  ///< the spec's constraints
};

/// A sweep, as defined by its JSON file:
///
///     { "name": …, "description": …, "experiment": …,                       default: feeding
///       "run":   { "seconds", "warmup", "messages", "repetitions", "seed", "watchdog", "pin" },   the options' values
///       "parts": [ { "axes": { "queue": ["a", "b"], "payload": "pow2:6..20:2", "window": [1, 256] },
///                    "zip": [ ["window", "batch"] ],
///                    "constraints": [ … ],
///                    "search": { "goal": "messages_per_second", "seconds": 3, "axes": { "window": [16, 256] },
///                                "start": { "window": 16 } } } ],
///       "constraints": [ … ] }
///
/// Axes are crossed, except that those listed together in `zip` step together. A constraint drops points:
///     { "if": { axis: values }, "then": { axis: values | { "min": …, "max": … } } }   `if` is optional
///     { "if": …, "product": [axis, axis], "max": … }                                  of numeric axes
/// A spec without `parts` is itself a single part.
///
/// The points of a part with `search` are not measured. Each is the start of a search for the best settings, and the
/// search's result is measured like a point. The search varies the axes of `search` and those that the point's queue
/// and transfer offer (with the values of `search`, if it has them too), except the axes of the part itself. It begins
/// at the values of `start`, which are added to the values of `search`, and at the default values of all other axes. If
/// a constraint rejects that point, axes are set to their first values, starting with the axes of `start`, until the
/// point is allowed.
struct Spec {
  std::string name, description;
  std::shared_ptr<const ExperimentInfo> info;  ///< the experiment
  Json document;                               ///< the document including overrides, for the results directory
  std::vector<Values> points;                  ///< in the order of the file, not yet resolved for a device
  std::vector<Search> searches;
};

/// Values of axes from the command line, each as "axis=values"; messages name `option`.
struct Overrides {
  std::vector<std::string> values;
  std::string option = "--axis";
};

/// The overrides replace their axes in every part. Throws BadInput with the file and the key, or with the option.
Spec load_spec(const std::filesystem::path& file, const Overrides& overrides);

/// Does the same for a document; `where` identifies it in messages.
Spec parse_spec(Json document, const std::string& where, const Overrides& overrides = {});

/// Finds a spec by path, or by name in the folders of specs. Throws BadInput with a list of the known names.
std::filesystem::path find_spec(const std::string& name_or_path);

}  // namespace feedrate
