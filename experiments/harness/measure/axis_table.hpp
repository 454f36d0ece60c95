#pragma once
#include <set>
#include <string>
#include <vector>

#include "common/axes.hpp"
#include "experiments/harness/json.hpp"

namespace feedrate {

/// All axes of an experiment in order, each with its owners: first the experiment's own axes, then its members' axes.
class AxisTable {
 public:
  struct Entry {
    Axis axis;
    std::vector<std::string> owners;  ///< members; empty: the experiment itself
  };
  explicit AxisTable(const std::vector<Axis>& own = {}) { add("", own); }
  /// Throws BadInput if an axis of this name exists and differs, or belongs to the experiment itself.
  void add(const std::string& owner, const std::vector<Axis>& axes);
  const std::vector<Entry>& entries() const { return entries_; }
  /// Throws BadInput with a list of the names if there is no such axis.
  const Entry& get(const std::string& name) const;
  const Axis& axis(const std::string& name) const { return get(name).axis; }

  /// The value of an axis, or its default if `values` lacks it.
  Value value(const Values& values, const std::string& name) const;
  /// A point's `params`: the values of all axes in `values`, by the axes' keys.
  Json params(const Values& values) const;
  /// The inverse of params(): the values in a row's `params` for all known axes.
  Values values(const Json& params) const;

 private:
  std::vector<Entry> entries_;
};

Json to_json(const Value&);
/// Names of the axes, for a member's `axes` in the catalogue.
Json names_of(const std::vector<Axis>&);
/// Whether the value means that the axis does not apply: 0 or "none".
bool is_none(const Value&);

}  // namespace feedrate
