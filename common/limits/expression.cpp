#include "common/limits/expression.hpp"

#include <fmt/format.h>

#include <iterator>
#include <utility>

namespace feedrate {

Expression::Expression(Kind kind, Expression left, Expression right) : kind_(kind) {
  for (Expression* part : {&left, &right}) {
    if (part->kind_ == kind && kind != Kind::quotient) {
      std::ranges::move(part->parts_, std::back_inserter(parts_));
    } else {
      parts_.push_back(std::move(*part));
    }
  }
}

Expression floor_of(std::string name) { return {Expression::Kind::floor, std::move(name), 0}; }
Expression ceiling_of(std::string name) { return {Expression::Kind::ceiling, std::move(name), 0}; }
Expression given(std::string name, double value) { return {Expression::Kind::given, std::move(name), value}; }
Expression operator+(Expression left, Expression right) {
  return {Expression::Kind::sum, std::move(left), std::move(right)};
}
Expression operator*(Expression left, Expression right) {
  return {Expression::Kind::product, std::move(left), std::move(right)};
}
Expression operator/(Expression left, Expression right) {
  return {Expression::Kind::quotient, std::move(left), std::move(right)};
}

std::optional<double> Expression::value(const Limits& limits) const {
  switch (kind_) {
    case Kind::number:
    case Kind::given:
      return value_;
    case Kind::floor:
      if (const auto ns = value_of(limits, name_)) return *ns / 1e9;
      return std::nullopt;
    case Kind::ceiling:
      return value_of(limits, name_);
    default:
      break;
  }
  std::optional<double> result;
  for (const Expression& part : parts_) {
    const auto value = part.value(limits);
    if (!value) return std::nullopt;
    if (!result) {
      result = value;
    } else if (kind_ == Kind::sum) {
      *result += *value;
    } else if (kind_ == Kind::product) {
      *result *= *value;
    } else {
      *result /= *value;
    }
  }
  return result;
}

std::string Expression::text() const {
  if (kind_ == Kind::number) return fmt::format("{}", value_);
  if (parts_.empty()) return name_;
  const char* const sign = kind_ == Kind::sum ? " + " : kind_ == Kind::product ? " × " : " / ";
  std::string text;
  for (const Expression& part : parts_) {
    const bool sum = part.kind_ == Kind::sum && kind_ != Kind::sum;
    const bool divisor = kind_ == Kind::quotient && !text.empty() && !part.parts_.empty();
    text += (text.empty() ? "" : sign) + (sum || divisor ? "(" + part.text() + ")" : part.text());
  }
  return text;
}

}  // namespace feedrate
