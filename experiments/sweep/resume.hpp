#pragma once
#include <string>
#include <vector>

#include "experiments/json.hpp"

namespace feedrate {

/// The first thing in which what would go on in a results folder differs from what its rows were measured with, as
/// "name: 'there' there, 'here' here"; empty when nothing does. Rows of one folder are compared with each other, so
/// that the spec with its settings, the device, the machine and the build must be the same. Keys that the folder does
/// not have yet, being older, say nothing.
std::string difference_from(const Json& spec_there, const std::vector<Json>& rows_there, const Json& spec_here,
                            const Json& environment_here, const std::string& device_here);

}  // namespace feedrate
