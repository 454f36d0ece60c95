#pragma once
#include <set>
#include <string>
#include <vector>

#include "common/axes.hpp"
#include "experiments/harness/json.hpp"

namespace feedrate {

/// All axes of an experiment in order: its own first, then its members', each with its owners.
class AxisTable {
 public:
  struct Entry {
    Axis axis;
    std::vector<std::string> owners;  ///< members; empty: the experiment itself
  };
  /// Throws BadInput when an axis of this name is there and differs, or is the experiment's own.
  void add(const std::string& owner, const std::vector<Axis>& axes);
  const std::vector<Entry>& entries() const { return entries_; }
  /// Throws BadInput listing the names.
  const Entry& get(const std::string& name) const;
  const Axis& axis(const std::string& name) const { return get(name).axis; }

  /// The value of an axis, its standard where `values` lack it.
  Value value(const Values& values, const std::string& name) const;
  /// A point's `params`, by the axes' keys: of all axes that `values` have.
  Json params(const Values& values) const;
  /// The opposite: what a row's `params` say of the axes that are known.
  Values values(const Json& params) const;

 private:
  std::vector<Entry> entries_;
};

Json to_json(const Value&);
/// Their names, as a member's `axes` in the catalogue.
Json names_of(const std::vector<Axis>&);
/// Whether the value says that the axis does not apply: 0 or "none".
bool is_none(const Value&);

}  // namespace feedrate
