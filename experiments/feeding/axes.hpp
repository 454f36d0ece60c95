#pragma once
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/device/device.hpp"
#include "kernels/workload.hpp"
#include "variants/point.hpp"

namespace feedrate {

using Json = nlohmann::json;

/// One axis of the sweep. Its name is the command line's option (`--name`), the specs' key and, where `row_key` does
/// not say otherwise, the key in a row's `params`.
struct Axis {
  std::string name;
  std::string row_key;
  std::string help;
  std::function<void(Point&, const std::string&)> set;  ///< throws BadInput, naming the option
  std::function<Json(const Point&)> get;
  bool free_text = false;                                ///< values are no names nor numbers, and may have commas
  std::function<std::vector<std::string>()> words = {};  ///< all that it takes, where these are words
};
const std::vector<Axis>& axes();
/// Throws BadInput listing the axes.
const Axis& axis(const std::string& name);

/// A point's `params`, in the order of the axes.
Json params_of(const Point&);

/// What becomes of a point on this machine.
struct Resolution {
  Point point;             ///< axes that do not apply are 0 or "none", so that equal work has equal parameters
  std::string impossible;  ///< why it can't be measured; empty when it can
};
Resolution resolve(Point, Device&);

std::unique_ptr<Workload> make_workload(const Point&);

/// Identifies a measurement: hash of its params and repetition, 16 hexadecimal digits.
std::string row_id(const Json& params, unsigned repetition);

}  // namespace feedrate
