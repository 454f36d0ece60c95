#include "common/error.hpp"
#include "common/service.hpp"
#include "experiments/cli/commands.hpp"
#include "experiments/harness/measure/experiment.hpp"

namespace feedrate {
namespace {

struct HelperOptions {
  std::string of;
  std::vector<std::string> arguments;
};

int help(const HelperOptions& options) {
  const auto service = Services::instance().entries().find(options.of);
  if (service != Services::instance().entries().end() && service->second.serve) {
    return service->second.serve(options.arguments);
  }
  const auto experiment = Experiments::instance().entries().find(options.of);
  if (experiment != Experiments::instance().entries().end() && experiment->second.helper) {
    return experiment->second.helper();
  }
  throw BadInput("OF", options.of, "an experiment or a service that starts helper processes");
}

}  // namespace

void add_helper(Program& program) {
  const auto options = std::make_shared<HelperOptions>();
  CLI::App* const command =
      program.app.add_subcommand("helper", "helper process, started by an experiment or a service");
  command->group("");  // not in --help: users have no use for it
  command->add_option("of", options->of)->required();
  command->add_option("arguments", options->arguments);
  program.on_choice(*command, [options] { return help(*options); });
}

}  // namespace feedrate
