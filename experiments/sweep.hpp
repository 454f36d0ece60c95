#pragma once
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "experiments/session.hpp"
#include "experiments/spec.hpp"

namespace feedrate {

struct SweepOptions {
  std::filesystem::path directory;  ///< results go there; rows that it already holds are not measured again
  bool resume = false;              ///< the directory has its spec.json, which stays
  bool dry_run = false;
  std::string profile_cell;            ///< profiler capture only around this cell: its number or row id
  std::function<void()> restart = {};  ///< called when a cell can't be stopped: replaces the process, never returns
};

/// Runs every cell of a spec in a seeded shuffled order, a repetition after the other. Returns the exit code.
int run_sweep(Session&, const Spec&, const SweepOptions&);

}  // namespace feedrate
