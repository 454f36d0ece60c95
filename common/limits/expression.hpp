#pragma once
#include <optional>
#include <string>
#include <vector>

#include "common/limits/limit.hpp"

namespace feedrate {

/// An expression over limits, such as window / (2 × round trip + launch): the bound of a point. Its value is in seconds
/// or per second, whatever the units of the limits. It is kept as a structure, so that rows and pages can say what it
/// is made of.
class Expression {
 public:
  enum class Kind { number, given, floor, ceiling, sum, product, quotient };

  Expression(double number) : value_(number) {}  // NOLINT(google-explicit-constructor): 2 * floor_of("…")

  Kind kind() const { return kind_; }
  const std::string& name() const { return name_; }  ///< of a limit, or of what is given
  double number() const { return value_; }           ///< a number, or the value of what is given
  const std::vector<Expression>& parts() const { return parts_; }

  /// None if one of its limits was not measured.
  std::optional<double> value(const Limits&) const;
  /// For people: "window / (2 × redis_round_trip_ns + launch_sync_ns)".
  std::string text() const;

 private:
  friend Expression floor_of(std::string);
  friend Expression ceiling_of(std::string);
  friend Expression given(std::string, double);
  friend Expression operator+(Expression, Expression);
  friend Expression operator*(Expression, Expression);
  friend Expression operator/(Expression, Expression);
  Expression(Kind kind, std::string name, double value) : kind_(kind), name_(std::move(name)), value_(value) {}
  /// Sums of sums and products of products are one.
  Expression(Kind kind, Expression left, Expression right);

  Kind kind_ = Kind::number;
  std::string name_;
  double value_ = 0;
  std::vector<Expression> parts_;
};

/// A limit by its name: a time. The limit is in ns, the expression in seconds.
Expression floor_of(std::string name);
/// A limit by its name: a rate.
Expression ceiling_of(std::string name);
/// What the point brings: its window, the bytes of a message.
Expression given(std::string name, double value);
Expression operator+(Expression, Expression);
Expression operator*(Expression, Expression);
Expression operator/(Expression, Expression);

/// The value of a limit, in its own unit, if it was measured.
inline std::optional<double> value_of(const Limits& limits, const std::string& name) {
  const auto found = limits.find(name);
  return found == limits.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace feedrate
