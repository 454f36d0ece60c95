#include "variants/overlap/pipeline.hpp"

namespace feedrate {
namespace {

struct Options {
  unsigned stages = 4;
};
const Axes<Options>& own_axes() {
  static const auto kAxes =
      Axes<Options>().number("stages", &Options::stages, {3, 4}, "number of kernels that process each item");
  return kAxes;
}

const PipelineRegistration registered(
    "chain", {.description = "decode, normalise, transform, reduce: kernels that pass items on through device memory",
              .axes = own_axes().list(),
              .stages = [](const Values& own) {
                std::vector<StagePlan> stages{{"decode", StageRole::generate}, {"normalise", StageRole::transform}};
                if (own_axes().of(own).stages == 4) stages.push_back({"transform", StageRole::transform});
                stages.push_back({"reduce", StageRole::reduce});
                return stages;
              }});

}  // namespace
}  // namespace feedrate
