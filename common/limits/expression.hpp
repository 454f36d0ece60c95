#pragma once
#include <optional>
#include <string>
#include <vector>

#include "common/limits/limit.hpp"

namespace feedrate {

/// An expression over limits, such as window / (2 × round trip + launch): the bound of a point. Its value is in seconds
/// or per second, regardless of the units of the limits. It is stored as a tree, so that rows and pages can show its
/// parts.
class Expression {
 public:
  enum class Kind { number, given, floor, ceiling, sum, product, quotient };

  Expression(double number) : value_(number) {}  // NOLINT(google-explicit-constructor): 2 * floor_of("…")

  Kind kind() const { return kind_; }
  const std::string& name() const { return name_; }  ///< name of a limit or of a given value
  double number() const { return value_; }           ///< a number, or a given value
  const std::vector<Expression>& parts() const { return parts_; }

  /// The value; none if one of its limits was not measured.
  std::optional<double> value(const Limits&) const;
  /// Readable text: "window / (2 × redis_round_trip_ns + launch_sync_ns)".
  std::string text() const;

 private:
  friend Expression floor_of(std::string);
  friend Expression ceiling_of(std::string);
  friend Expression given(std::string, double);
  friend Expression operator+(Expression, Expression);
  friend Expression operator*(Expression, Expression);
  friend Expression operator/(Expression, Expression);
  Expression(Kind kind, std::string name, double value) : kind_(kind), name_(std::move(name)), value_(value) {}
  /// Flattens nested sums and nested products.
  Expression(Kind kind, Expression left, Expression right);

  Kind kind_ = Kind::number;
  std::string name_;
  double value_ = 0;
  std::vector<Expression> parts_;
};

/// A limit that is a time, by name. The limit is in ns, the expression in seconds.
Expression floor_of(std::string name);
/// A limit that is a rate, by name.
Expression ceiling_of(std::string name);
/// A value given by the point, such as its window or the bytes per message.
Expression given(std::string name, double value);
Expression operator+(Expression, Expression);
Expression operator*(Expression, Expression);
Expression operator/(Expression, Expression);

/// The value of a limit in the limit's unit, if it was measured.
inline std::optional<double> value_of(const Limits& limits, const std::string& name) {
  const auto found = limits.find(name);
  return found == limits.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace feedrate
