#pragma once
#include <functional>
#include <string>

#include "experiments/harness/sweep/results.hpp"
#include "experiments/harness/sweep/spec.hpp"

namespace feedrate {

struct SweepOptions {
  std::string profile_cell;            ///< limit profiler capture to this cell, given by number or row ID
  std::filesystem::path found = {};    ///< file to which the spec of the searches' results is written
  std::function<void()> restart = {};  ///< called if a cell cannot be stopped; replaces the process and never returns
};

/// All points that a sweep may measure.
std::vector<Resolution> all_points(const Spec&, Session&);

/// Searches for the best settings if the spec has searches, then measures every cell, repetition by repetition, in a
/// seeded shuffled order. Cells that have rows are not measured again. Returns the exit code.
int run_sweep(Session&, const Spec&, Results&, const SweepOptions&);

/// Prints the cells and the estimated time without measuring. Returns the exit code.
int plan_sweep(Session&, const Spec&);

}  // namespace feedrate
