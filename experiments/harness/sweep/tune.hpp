#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "experiments/harness/sweep/results.hpp"
#include "experiments/harness/sweep/spec.hpp"

namespace feedrate {

/// Searches each variant's best settings, all with the same budget of seconds and the same cap on threads, by short
/// measurements (halving.hpp). Each of these is a row with a `search`; none is an answer: what is found is to be
/// measured afresh.
class Tuner {
 public:
  /// Called after each try: its row, and how many there were in this search.
  using Tell = std::function<void(const Json& row, unsigned tries)>;
  /// Takes up the tries that the folder already has: the same search finds the same from them.
  Tuner(Session&, Results&, std::function<void()> restart);
  /// The best settings that were found, or where the search started when nothing else could be measured. Ends early
  /// when the user interrupts.
  Values find(const Search&, const Tell&);

 private:
  /// One try; `times`: how often the point was measured at this rung before, `number`: the try's in its search.
  Json measure(const Search&, const Resolution&, unsigned rung, unsigned times, unsigned number);

  Session& session_;
  Results& results_;
  std::function<void()> restart_;
  std::map<std::string, Json> earlier_;  // rows by id
};

}  // namespace feedrate
