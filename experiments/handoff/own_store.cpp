#include "experiments/handoff/own_store.hpp"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <thread>

#include "common/error.hpp"
#include "experiments/harness/services/own_executable.hpp"
#include "feedrate/tensors.hpp"

namespace feedrate::handoff {

OwnStore::OwnStore(const std::string& device, std::size_t bytes) : bytes_(bytes), socket_(folder_ / "store.sock") {
  constexpr auto kPatience = std::chrono::seconds(30);
  process_ = start_own({"store", "serve", "--socket", socket_, "--device", device, "--memory", std::to_string(bytes),
                        "--parent", std::to_string(getpid())},
                       {.log = folder_ / "log"});
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (true) {
    try {
      tensors::Store store(socket_);
      return;
    } catch (const tensors::Unreachable&) {
      if (waitpid(process_, nullptr, WNOHANG) == process_) process_ = -1;
      if (process_ < 0 || std::chrono::steady_clock::now() > until) {
        std::ifstream log(folder_ / "log");
        const std::string said((std::istreambuf_iterator<char>(log)), {});
        end();
        throw Failure(fmt::format("the tensor store does not start: {}", said));
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
}

OwnStore::~OwnStore() { end(); }

void OwnStore::end() {
  if (process_ <= 0) return;
  kill(process_, SIGTERM);
  await_end(process_);
}

}  // namespace feedrate::handoff
