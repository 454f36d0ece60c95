#pragma once
#include <span>
#include <string>

#include "experiments/harness/sweep/spec.hpp"

namespace feedrate {

/// Budget and goal of the tuning.
struct Tuning {
  double seconds_each = 3;  ///< wall-clock budget per search
  std::string goal;         ///< a figure for which higher is better; empty: the spec's goal, else the experiment's rate
};

/// Returns a spec with the same questions but free settings. Each part keeps its question (variant, payload, …), and
/// every axis that is a setting is searched, with the same budget for each variant. Settings are the axes that the
/// experiment or a member names for searches. A setting with several values in the part is searched among these, a
/// setting with a single value remains fixed, and a setting that the part does not name is searched among its owner's
/// values. Throws BadInput if a part offers a load or no setting is free.
Spec tuned(const Spec&, const Tuning&);

/// Returns a spec of fixed points with the run settings of another spec, so that the results of a search can be
/// measured again at any time.
Json spec_of_points(const Spec&, std::span<const Resolution>);

}  // namespace feedrate
