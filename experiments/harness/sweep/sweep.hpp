#pragma once
#include <functional>
#include <string>

#include "experiments/harness/sweep/results.hpp"
#include "experiments/harness/sweep/spec.hpp"

namespace feedrate {

struct SweepOptions {
  std::string profile_cell;            ///< profiler capture only around this cell: its number or row id
  std::filesystem::path found = {};    ///< file for the spec of what the searches found
  std::function<void()> restart = {};  ///< called when a cell can't be stopped: replaces the process, never returns
};

/// All that a sweep may measure.
std::vector<Resolution> all_points(const Spec&, Session&);

/// Searches the best settings where the spec asks for that, then measures every cell in a seeded shuffled order, a
/// repetition after the other. Cells that have rows are not measured again. Returns the exit code.
int run_sweep(Session&, const Spec&, Results&, const SweepOptions&);

/// Prints the cells and the time they will take, and measures nothing. Returns the exit code.
int plan_sweep(Session&, const Spec&);

}  // namespace feedrate
