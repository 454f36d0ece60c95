#pragma once
#include <functional>
#include <map>
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
  /// Reuses the tries that the folder already has: the same search takes the same path with them.
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

}  // namespace feedrate
