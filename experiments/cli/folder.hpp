#pragma once
#include <CLI/CLI.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "experiments/cli/options.hpp"
#include "experiments/harness/sweep/results.hpp"
#include "experiments/harness/sweep/spec.hpp"

namespace feedrate {

/// What `sweep` and `capacity` share: which spec they measure, and which results folder they begin or go on in.
struct FolderOptions {
  std::string spec, out, resume;
  std::vector<std::string> axes;
  bool resume_anyway = false, dry_run = false;

  void add(CLI::App& command, const std::string& standard_spec);
  bool resuming() const { return !resume.empty(); }
  /// Reads the spec, or the resumed folder's, and gives its `run` to the options that nobody set; its document then has
  /// what they came to. Throws BadInput.
  Spec load(CommonOptions&, CLI::App& command) const;
  /// The folder that is resumed or asked for, or a new one named by time and spec. Throws BadInput where rows would be
  /// added to another sweep's.
  std::filesystem::path directory(const std::string& name) const;
  /// Opens the folder for writing. Throws BadInput when it is resumed and something differs from what it was begun
  /// with.
  Results open(const std::filesystem::path& directory, const Spec&, Session&) const;
};

/// How to go on with what was interrupted in this folder.
std::string resume_text(const std::string& command, const std::filesystem::path& directory);

}  // namespace feedrate
