#include "variants/overlap/pipeline.hpp"

namespace feedrate {
namespace {

const PipelineRegistration registered(
    "copy_process_copy",
    {.description = "items are copied from pinned memory, a kernel processes them, results are copied back",
     .stages = [](const Values&) {
       return std::vector<StagePlan>{
           {"copy in", StageRole::copy_in}, {"process", StageRole::transform}, {"copy out", StageRole::copy_out}};
     }});

}  // namespace
}  // namespace feedrate
