#pragma once
#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

/// Axes of a sweep: named coordinates and the values that they take. Whoever owns an axis (an experiment, a queue, a
/// transfer, a workload) declares it beside the struct that its values are read into:
///
///     struct RingOptions { unsigned lanes = 0; std::string notify = "auto"; };
///     const auto kAxes = Axes<RingOptions>().number("lanes", &RingOptions::lanes, 0, 4096, "rings")
///                                           .word("notify", &RingOptions::notify, {"auto", "flags"}, "how …");
///     const RingOptions options = kAxes.of(point.own);
///
/// The command line's options, the specs' keys, a row's `params` and the catalogue follow from this.
namespace feedrate {

using Value = std::variant<std::uint64_t, double, std::string>;
/// By axis name. An axis that is not there has its standard value.
using Values = std::map<std::string, Value>;
/// As a command line writes it.
std::string text_of(const Value&);
/// The value of a number, else 0.
double number_of(const Value&);

/// An axis with some of its values, as a command line writes them.
struct AxisValues {
  std::string axis;
  std::vector<std::string> values;
};

struct Axis {
  std::string name;  ///< of the option (`--name`) and of the specs' key
  std::string key;   ///< in a row's `params`
  std::string help;
  Value standard;
  std::function<Value(const std::string&)> read;         ///< throws BadInput, naming the option
  std::function<std::vector<std::string>()> words = {};  ///< all that it takes, where these are words
  double least = 0, most = 0;                            ///< of numbers
  bool free_text = false;                                ///< values are neither names nor numbers; may have commas
};

/// Of each of these axes the value that is given, else its standard value.
Values values_on(const std::vector<Axis>&, const Values& given);
std::vector<Axis> joined(std::vector<Axis> axes, const std::vector<Axis>& more);

/// How numbers are limited, and an axis named.
struct Limited {
  double least = 0, most = 0;
  std::uint64_t multiple_of = 1;
  std::string key = {};  ///< in rows, where it is not the name
};

Axis number_axis(std::string name, std::uint64_t standard, const Limited&, std::string help);
Axis real_axis(std::string name, double standard, const Limited&, std::string help);
Axis word_axis(std::string name, std::string standard, std::function<std::vector<std::string>()> words,
               std::string help);
/// Free text; `check` throws BadInput for what is not allowed. The standard value is always allowed.
Axis text_axis(std::string name, std::string standard, std::function<void(const std::string&)> check, std::string help);

/// Any text, as it is: a path or a URL of this system's, which need not be UTF-8.
Axis raw_axis(std::string name, std::string standard, std::string help);

/// The axes whose values make a T.
template <class T>
class Axes {
 public:
  /// The field is of T, or of one of its bases.
  template <class N, class Base>
  Axes& number(const std::string& name, N Base::*inherited, const Limited& limits, std::string help) {
    const auto field = static_cast<N T::*>(inherited);
    if constexpr (std::is_floating_point_v<N>) {
      add(real_axis(name, T{}.*field, limits, std::move(help)), field);
    } else {
      add(number_axis(name, T{}.*field, limits, std::move(help)), field);
    }
    return *this;
  }
  /// `words` are asked for late: members register themselves while the program loads.
  Axes& word(const std::string& name, std::string T::*field, std::function<std::vector<std::string>()> words,
             std::string help) {
    add(word_axis(name, T{}.*field, std::move(words), std::move(help)), field);
    return *this;
  }
  Axes& word(const std::string& name, std::string T::*field, std::vector<std::string> words, std::string help) {
    return word(
        name, field, [words = std::move(words)] { return words; }, std::move(help));
  }
  Axes& text(const std::string& name, std::string T::*field, std::function<void(const std::string&)> check,
             std::string help) {
    add(text_axis(name, T{}.*field, std::move(check), std::move(help)), field);
    return *this;
  }

  Axes& raw(const std::string& name, std::string T::*field, std::string help) {
    add(raw_axis(name, T{}.*field, std::move(help)), field);
    return *this;
  }

  /// All axes of one of T's bases.
  template <class Base>
  Axes& all_of(const Axes<Base>& base) {
    list_.insert(list_.end(), base.list_.begin(), base.list_.end());
    for (const auto& field : base.fields_) fields_.push_back({field.set, field.get});
    return *this;
  }

  T of(const Values& values) const {
    T made;
    for (std::size_t i = 0; i < list_.size(); ++i) {
      if (const auto found = values.find(list_[i].name); found != values.end()) fields_[i].set(made, found->second);
    }
    return made;
  }
  /// Writes all of `made` into `values`.
  void put(const T& made, Values& values) const {
    for (std::size_t i = 0; i < list_.size(); ++i) values[list_[i].name] = fields_[i].get(made);
  }
  const std::vector<Axis>& list() const { return list_; }

 private:
  template <class>
  friend class Axes;
  struct Field {
    std::function<void(T&, const Value&)> set;
    std::function<Value(const T&)> get;
  };
  template <class N>
  void add(Axis axis, N T::*field) {
    list_.push_back(std::move(axis));
    if constexpr (std::is_same_v<N, std::string>) {
      fields_.push_back({[field](T& made, const Value& value) { made.*field = std::get<std::string>(value); },
                         [field](const T& made) { return Value(made.*field); }});
    } else if constexpr (std::is_floating_point_v<N>) {
      fields_.push_back({[field](T& made, const Value& value) { made.*field = number_of(value); },
                         [field](const T& made) { return Value(static_cast<double>(made.*field)); }});
    } else {
      fields_.push_back({[field](T& made, const Value& value) { made.*field = static_cast<N>(number_of(value)); },
                         [field](const T& made) { return Value(static_cast<std::uint64_t>(made.*field)); }});
    }
  }

  std::vector<Axis> list_;
  std::vector<Field> fields_;
};

}  // namespace feedrate
