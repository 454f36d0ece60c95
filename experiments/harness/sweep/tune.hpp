#pragma once
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "experiments/harness/sweep/results.hpp"
#include "experiments/harness/sweep/spec.hpp"

namespace feedrate {

/// Searches for the best settings of variants by short measurements (halving.hpp), with the same budget of seconds and
/// the same limit on threads for each variant. Each measurement is a row with a `search` and is not an answer: the
/// settings found are remeasured.
class Tuner {
 public:
  /// Called after each try with its row and the number of tries in this search.
  using Tell = std::function<void(const Json& row, unsigned tries)>;
  /// Reuses the tries already in the folder; given these, the same search takes the same path.
  Tuner(Session&, Results&, std::function<void()> restart);
  /// Returns the best settings found, or the start of the search if nothing else could be measured. Ends early if the
  /// user interrupts.
  Values find(const Search&, const Tell&);

 private:
  /// Measures one try. `times` is the number of earlier measurements of the point at this rung; `number` is the try's
  /// number in its search.
  Json measure(const Search&, const Resolution&, unsigned rung, unsigned times, unsigned number);

  Session& session_;
  Results& results_;
  std::function<void()> restart_;
  std::map<std::string, Json> earlier_;  // rows by id
};

/// Budget and goal of the tuning.
struct Tuning {
  double seconds_each = 3;  ///< wall-clock budget per search
  std::string goal;         ///< a figure for which higher is better; empty: the spec's goal, else the experiment's rate
};

/// Returns a spec with the same questions but free settings. Each part keeps its question (variant, payload, …), and
/// every axis that is a setting is searched, with the same budget for each variant. Settings are the axes that the
/// experiment or a member offers for searches. A setting with several values in the part is searched among these, a
/// setting with a single value remains fixed, and a setting that the part does not mention is searched among its
/// owner's values. Throws BadInput if a part offers a load or no setting is free.
Spec tuned(const Spec&, const Tuning&);

/// Returns a spec of fixed points with the run settings of another spec, so that the results of a search can be
/// measured again at any time.
Json spec_of_points(const Spec&, std::span<const Resolution>);

}  // namespace feedrate
