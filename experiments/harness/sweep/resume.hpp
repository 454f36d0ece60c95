#pragma once
#include <string>
#include <vector>

#include "experiments/harness/json.hpp"

namespace feedrate {

/// The first difference between this invocation and the one that measured a results folder's rows, as
/// "name: 'there' in the folder, 'here' now"; empty if there is none. Rows of one folder are compared with each other,
/// so the spec with its settings, the device, the machine and the build must be the same. Keys that an older folder
/// lacks are ignored.
std::string difference_from(const Json& spec_there, const std::vector<Json>& rows_there, const Json& spec_here,
                            const Json& environment_here, const std::string& device_here);

}  // namespace feedrate
