#include "variants/overlap/pipeline.hpp"

namespace feedrate {
namespace {

const PipelineRegistration registered(
    "producer_consumer",
    {.description = "one kernel generates items, another computes their checksums", .stages = [](const Values&) {
       return std::vector<StagePlan>{{"generate", StageRole::generate}, {"process", StageRole::reduce}};
     }});

}  // namespace
}  // namespace feedrate
