#pragma once
#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

/// Axes of a sweep: named coordinates and their values. The owner of an axis (an experiment, a queue, a transfer or a
/// workload) declares it next to the struct that receives its values:
///
///     struct RingOptions { unsigned lanes = 0; std::string notify = "auto"; };
///     const auto kAxes = Axes<RingOptions>().number("lanes", &RingOptions::lanes, 0, 4096, "rings")
///                                           .word("notify", &RingOptions::notify, {"auto", "flags"}, "how …");
///     const RingOptions options = kAxes.of(point.own);
///
/// Command-line options, keys in specs, a row's `params` and the catalogue are derived from this declaration.
namespace feedrate {

using Value = std::variant<std::uint64_t, double, std::string>;
/// Values by axis name. A missing axis has its default value.
using Values = std::map<std::string, Value>;
/// The value as written on a command line.
std::string text_of(const Value&);
/// The value if it is a number, otherwise 0.
double number_of(const Value&);

/// An axis with some of its values, as written on a command line.
struct AxisValues {
  std::string axis;
  std::vector<std::string> values;
};

struct Axis {
  std::string name;  ///< name of the option (`--name`) and of the key in specs
  std::string key;   ///< name in a row's `params`
  std::string help;
  Value standard;
  std::function<Value(const std::string&)> read;         ///< parses a value; throws BadInput that names the option
  std::function<std::vector<std::string>()> words = {};  ///< the allowed values, if they are words
  double least = 0, most = 0;                            ///< range of numbers
  bool free_text = false;  ///< values are neither names nor numbers and may contain commas
};

/// Returns a value for each of the axes: the given one, otherwise the default.
Values values_on(const std::vector<Axis>&, const Values& given);
std::vector<Axis> joined(std::vector<Axis> axes, const std::vector<Axis>& more);

/// Limits of a numeric axis, and its name in rows.
struct Limited {
  double least = 0, most = 0;
  std::uint64_t multiple_of = 1;
  std::string key = {};  ///< name in rows, if it differs from the axis name
};

Axis number_axis(const std::string& name, std::uint64_t standard, const Limited&, std::string help);
Axis real_axis(const std::string& name, double standard, const Limited&, std::string help);
Axis word_axis(const std::string& name, std::string standard, std::function<std::vector<std::string>()> words,
               std::string help);
/// An axis of free text; `check` throws BadInput for text that is not allowed. The default value is always allowed.
Axis text_axis(const std::string& name, std::string standard, std::function<void(const std::string&)> check,
               std::string help);

/// An axis of unchecked text, such as a path or URL on this system, which need not be UTF-8.
Axis raw_axis(const std::string& name, std::string standard, std::string help);

/// The axes whose values fill the fields of a T.
template <class T>
class Axes {
 public:
  /// The field belongs to T or to one of its bases.
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
  /// `words` is called late, because members register themselves while the program loads.
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

  /// Adds all axes of one of T's bases.
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
  /// Writes all fields of `made` into `values`.
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
