#include "common/error.hpp"
#include "experiments/cli/commands.hpp"
#include "experiments/harness/measure/experiment.hpp"

namespace feedrate {

void add_helper(CLI::App& app, Action& action) {
  const auto experiment = std::make_shared<std::string>();
  CLI::App* const command = app.add_subcommand("helper", "a process that an experiment starts beside its own");
  command->group("");  // not in --help: it is of no use without that process
  command->add_option("experiment", *experiment)->required();
  command->callback([experiment, &action] {
    action = [experiment] {
      const auto& helper = Experiments::instance().get("experiment", *experiment).helper;
      if (!helper) throw BadInput("experiment", *experiment, "one that starts helpers");
      return helper();
    };
  });
}

}  // namespace feedrate
