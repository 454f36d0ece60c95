#include "experiments/cli/options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "common/error.hpp"
#include "common/redis/url.hpp"
#include "common/units.hpp"

namespace feedrate {
namespace {

bool set_by_environment(const CLI::Option& option) {
  const char* value = std::getenv(option.get_envname().c_str());
  return value != nullptr && *value != '\0';
}

/// CLI11's config files are TOML; Feedrate's are JSON, like its other files. CLI11 would also let the file override the
/// environment.
class JsonConfig final : public CLI::Config {
 public:
  explicit JsonConfig(const CLI::App& app) : app_(app) {}
  std::string to_config(const CLI::App*, bool, bool, std::string) const override { return ""; }
  std::vector<CLI::ConfigItem> from_config(std::istream& input) const override {
    std::vector<CLI::ConfigItem> items;
    try {
      collect(Json::parse(input), app_, {}, items);
    } catch (const Json::exception& error) {
      throw BadInput(fmt::format("--config: not valid JSON: {}", text_of(error)));
    }
    return items;
  }

 private:
  static void collect(const Json& object, const CLI::App& command, const std::vector<std::string>& parents,
                      std::vector<CLI::ConfigItem>& items) {
    if (!object.is_object()) throw BadInput("--config", object.dump(), "an object of options");
    for (const auto& [name, value] : object.items()) {
      if (value.is_object()) {
        const auto named =
            command.get_subcommands([&section = name](const CLI::App* each) { return each->get_name() == section; });
        if (named.empty()) throw BadInput("--config", name, subcommands_of(command));
        auto path = parents;
        path.push_back(name);
        collect(value, *named.front(), path, items);
        continue;
      }
      const CLI::Option* option = command.get_option_no_throw("--" + name);
      if (option == nullptr) option = command.get_option_no_throw(name);  // a positional option
      if (option == nullptr) {
        throw BadInput("--config", name, fmt::format("the options in `{} --help`", command.get_display_name()));
      }
      if (set_by_environment(*option)) continue;
      CLI::ConfigItem item;
      item.parents = parents;
      item.name = name;
      for (const Json& one : value.is_array() ? value : Json::array({value})) {
        item.inputs.push_back(one.is_string() ? one.get<std::string>() : one.dump());
      }
      items.push_back(std::move(item));
    }
  }

  const CLI::App& app_;
};

/// Adds an option whose text `read` checks and stores.
CLI::Option* add_read(CLI::App& app, const std::string& name, const std::string& type, const std::string& standard,
                      const std::string& help, const std::function<void(const std::string& text)>& read) {
  return app.add_option_function<std::string>("--" + name, read, help)
      ->envname(variable_of(name))
      ->type_name(type)
      ->default_str(standard);
}

/// Adds an option for each run setting. Counts accept forms such as "1M", and errors name the allowed range.
struct AddOption {
  CLI::App& app;

  void operator()(const std::string& name, double& field, SecondsOption kind, const char* help) const {
    add_seconds(app, name, field, kind.least, kind.most, help);
  }
  template <class N>
  void operator()(const std::string& name, N& field, CountOption kind, const char* help) const {
    add_read(app, name, "N", std::to_string(field), help, [=, &field](const std::string& text) {
      const auto value = parse_count("--" + name, text);
      if (value < kind.least || value > kind.most) {
        throw BadInput("--" + name, text, fmt::format("{} to {}", kind.least, format_count(kind.most)));
      }
      field = static_cast<N>(value);
    });
  }
  void operator()(const std::string& name, double& field, ShareOption, const char* help) const {
    add_percent(app, name, field, help);
  }
  void operator()(const std::string& name, std::string& field, const WordOption& kind, const char* help) const {
    add_option(app, name, field, fmt::format("{}: {}", help, fmt::join(kind.words, ", ")))
        ->check(CLI::IsMember(kind.words));
  }
  void operator()(const std::string& name, bool& field, FlagOption, const char* help) const {
    app.add_flag("--" + name, field, help)->envname(variable_of(name));
  }
};

/// Throws BadInput if a setting that has no effect on the experiment has another value than 0 and the default; sets it
/// to 0.
void reject_unused(const ExperimentInfo& info, RunSettings& run) {
  const Json given = run_of(run), standard = run_of({});
  for_each_option(run, [&](const std::string& name, auto& value, const auto&...) {
    if (!info.entry().unused_options.contains(name)) return;
    const std::decay_t<decltype(value)> none{};
    if (value != none && given[name] != standard[name]) {
      throw BadInput("--" + name, given[name].dump(), no_effect_text(info.name()));
    }
    value = none;
  });
}

}  // namespace

std::string no_effect_text(const std::string& experiment) {
  return fmt::format("only with another --experiment; it has no effect on {}", experiment);
}

CLI::Option* add_seconds(CLI::App& app, const std::string& name, double& field, double least, double most,
                         const std::string& help) {
  return add_read(app, name, "SECONDS", fmt::format("{}", field), help, [=, &field](const std::string& text) {
    field = parse_number("--" + name, text);
    if (!(field >= least && field <= most)) {
      throw BadInput("--" + name, text, fmt::format("{} to {} seconds", least, most));
    }
  });
}

CLI::Option* add_percent(CLI::App& app, const std::string& name, double& share, const std::string& help) {
  return add_read(app, name, "PERCENT", fmt::format("{}%", 100 * share), help, [=, &share](const std::string& text) {
    const bool percent = text.ends_with('%');
    const double value = parse_number("--" + name, percent ? text.substr(0, text.size() - 1) : text);
    share = percent ? value / 100 : value;
    if (!(share > 0) || share > 1) throw BadInput("--" + name, text, "0.1% to 100%");
  });
}

void apply_run(const Json& run, const std::string& where, CLI::App& command) {
  for (const auto& [name, value] : run.items()) {
    CLI::Option* option = command.get_option("--" + name);
    if (!option->empty()) continue;
    try {
      option->add_result(value.is_string() ? value.get<std::string>() : value.dump());
      option->run_callback();
    } catch (const std::exception& error) {
      throw BadInput(fmt::format("spec {}: run.{}: {}", where, name, error.what()));
    }
  }
}

std::string variable_of(const std::string& option) {
  std::string name = "FEEDRATE_" + option;
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return c == '-' ? '_' : std::toupper(c); });
  return name;
}

std::string subcommands_of(const CLI::App& app) {
  std::string names;
  for (const CLI::App* each : app.get_subcommands([](const CLI::App* one) { return !one->get_group().empty(); })) {
    names += (names.empty() ? "" : ", ") + each->get_name();
  }
  return names;
}

std::shared_ptr<CLI::Config> json_config(const CLI::App& app) { return std::make_shared<JsonConfig>(app); }

void CommonOptions::add_device(CLI::App& app) {
  if (app.get_option_no_throw("--device") == nullptr) {
    add_option(app, "device", device, "device to run on: cuda, cpu, or auto (cuda if there is a GPU)");
  }
  add_option(app, "gpu", gpu, "CUDA index of the GPU");
}

void CommonOptions::add_services(CLI::App& app, const std::set<std::string>& names, bool workers) {
  for (const auto& [name, entry] : Services::instance().entries()) {
    if (!names.empty() && !names.contains(name)) continue;
    for (const Axis& option : entry.options) {
      add_value(app, option, services.values[name], option.standard)->group("SERVICE " + name);
    }
    if (!workers) continue;
    for (const Axis& option : entry.worker_options) {
      add_value(app, option, services.values[name], option.standard)->group("WORKERS of " + name);
      services.values[name].try_emplace(option.name, option.standard);
    }
  }
}

void CommonOptions::add(CLI::App& app) {
  add_device(app);
  add_services(app);
  for_each_option(run, AddOption{app});
}

std::unique_ptr<Session> CommonOptions::session(const std::string& experiment,
                                                const std::vector<std::string>& arguments) {
  reject_unused(ExperimentInfo(experiment), run);
  if (run.seconds <= 0 && run.messages == 0) throw BadInput("--seconds", "0", "more than 0, or --messages N");
  std::vector<std::string> shown(arguments.size());  // for the run's row
  std::transform(arguments.begin(), arguments.end(), shown.begin(), redis::without_password);
  return std::make_unique<Session>(experiment, device, gpu, services, fmt::format("{}", fmt::join(shown, " ")), run);
}

CLI::Option* add_value(CLI::App& app, const Axis& axis, Values& values, const Value& standard) {
  const std::string help = axis.words ? fmt::format("{}: {}", axis.help, fmt::join(axis.words(), ", ")) : axis.help;
  const bool text = std::holds_alternative<std::string>(axis.standard);
  return add_read(
      app, axis.name, text ? "NAME" : "N", text_of(standard), help,
      [name = axis.name, read = axis.read, &values](const std::string& given) { values[name] = read(given); });
}

void add_axes(CLI::App& app, const AxisTable& table, Values& point, const std::set<std::string>& names) {
  for (const auto& [axis, owners] : table.entries()) {
    if (!names.empty() && !names.contains(axis.name)) continue;
    add_value(app, axis, point, table.value(point, axis.name))
        ->group(owners.empty() ? "AXES" : fmt::format("AXES of {}", fmt::join(owners, ", ")));
  }
}

std::string early_value(const std::string& name, const std::vector<std::string>& arguments) {
  const std::string option = "--" + name;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].starts_with(option + "=")) return arguments[i].substr(option.size() + 1);
    if (arguments[i] == option && i + 1 < arguments.size()) return arguments[i + 1];
  }
  const char* value = std::getenv(variable_of(name).c_str());
  return value == nullptr ? "" : value;
}

}  // namespace feedrate
