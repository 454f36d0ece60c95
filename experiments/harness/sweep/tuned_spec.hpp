#pragma once
#include <span>
#include <string>

#include "experiments/harness/sweep/spec.hpp"

namespace feedrate {

/// How much each variant is tuned, and for what.
struct Tuning {
  double seconds_each = 3;  ///< wall-clock budget of every search
  std::string goal;  ///< a figure that is better when it is higher; empty: the spec's, else the experiment's rate
};

/// The questions of a spec with the settings set free: what each part asks (variant, payload, …) stays, and every axis
/// that is a setting is searched, with the same budget for each variant. Settings are the axes that the experiment or a
/// member names for searches. One that the part gives several values is searched among these, one that it gives a
/// single value stays fixed, and one that it does not name is searched among the values that the owner names.
/// Throws BadInput where a part offers a load, or nothing is free.
Spec tuned(const Spec&, const Tuning&);

/// A spec of fixed points under the settings of another: what a search found, to be measured again at any time.
Json spec_of_points(const Spec&, std::span<const Resolution>);

}  // namespace feedrate
