#pragma once
#include <nlohmann/json.hpp>

namespace feedrate {
using Json = nlohmann::json;
}
