#include <sys/socket.h>

#include "common/error.hpp"
#include "experiments/cli/commands.hpp"
#include "experiments/handoff/own_process.hpp"
#include "experiments/handoff/reader.hpp"

namespace feedrate {

void add_handoff_reader(CLI::App& app, Action& action) {
  CLI::App* const command = app.add_subcommand("handoff-reader", "takes tensors from the process that started it");
  command->group("");  // not in --help: it needs that process's socket
  command->callback([&action] {
    action = [] {
      int type = 0;
      socklen_t size = sizeof type;
      if (getsockopt(handoff::kOwnSocket, SOL_SOCKET, SO_TYPE, &type, &size) != 0 || type != SOCK_SEQPACKET) {
        throw BadInput("subcommand", "handoff-reader", "what --help lists: this one is the experiment handoff's own");
      }
      handoff::read_tensors(handoff::kOwnSocket);
      return 0;
    };
  });
}

}  // namespace feedrate
