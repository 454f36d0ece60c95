#pragma once
#include <CLI/CLI.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "experiments/cli/options.hpp"
#include "experiments/harness/sweep/results.hpp"
#include "experiments/harness/sweep/spec.hpp"

namespace feedrate {

/// Options shared by `sweep`, `tune`, `capacity` and `ab`: the spec to measure and the results folder to start or
/// resume.
struct FolderOptions {
  std::string spec, out, resume;
  std::string standard_spec;  ///< used unless a folder is resumed
  std::vector<std::string> axes;
  bool resume_anyway = false, dry_run = false;

  void add(CLI::App& command, const std::string& standard);
  bool resuming() const { return !resume.empty(); }
  /// Reads the spec, or the resumed folder's spec, and applies its `run` to the options that were not set. The returned
  /// spec's document contains the resulting settings. Throws BadInput.
  Spec load(CommonOptions&, CLI::App& command) const;
  /// Returns the resumed or requested folder, or a new one named after time and spec. Throws BadInput if the folder
  /// already has rows of another sweep.
  std::filesystem::path directory(const std::string& name) const;
  /// Opens the folder for writing. Throws BadInput if it is resumed and its spec, settings, device, machine or build
  /// differ.
  Results open(const std::filesystem::path& directory, const Spec&, Session&) const;
};

/// Returns the hint on how to resume the interrupted command in this folder.
std::string resume_text(const std::string& command, const std::filesystem::path& directory);

}  // namespace feedrate
