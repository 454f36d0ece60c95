#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <optional>
#include <thread>

#include "common/clock.hpp"
#include "common/own_executable.hpp"
#include "common/service.hpp"
#include "common/socket_folder.hpp"
#include "feedrate/tensors.hpp"

namespace feedrate::handoff {
namespace {

/// A tensor store in a separate process, started as `feedrate store serve`.
class OwnStore {
 public:
  /// `device`: `cpu` or `cuda:N`. Throws Failure if it does not start.
  OwnStore(const std::string& device, std::size_t bytes) : device_(device), bytes_(bytes) {
    process_ = start_feedrate({"store", "serve", "--socket", socket_, "--device", device, "--memory",
                               std::to_string(bytes), "--parent", std::to_string(getpid())},
                              {.log = folder_ / "log"});
    constexpr auto kPatience = std::chrono::seconds(30);
    const auto until = std::chrono::steady_clock::now() + kPatience;
    while (!answers()) {
      if (!alive() || std::chrono::steady_clock::now() > until) {
        std::ifstream log(folder_ / "log");
        const std::string said((std::istreambuf_iterator<char>(log)), {});
        end();
        throw Failure(fmt::format("the tensor store did not start: {}", said));
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
  OwnStore(const OwnStore&) = delete;
  OwnStore& operator=(const OwnStore&) = delete;
  ~OwnStore() { end(); }

  bool serves() { return alive() && listens(socket_, SOCK_SEQPACKET); }
  bool has(const std::string& device, std::size_t bytes) const { return device_ == device && bytes_ >= bytes; }
  const std::string& socket() const { return socket_; }

 private:
  bool alive() {
    if (process_ > 0 && waitpid(process_, nullptr, WNOHANG) == process_) process_ = -1;
    return process_ > 0;
  }
  bool answers() const {
    try {
      const tensors::Store store(socket_);
      return true;
    } catch (const tensors::Unreachable&) {
      return false;
    }
  }
  void end() {
    if (process_ <= 0) return;
    kill(process_, SIGTERM);
    await_end(process_);
    process_ = -1;
  }

  std::string device_;
  std::size_t bytes_;
  SocketFolder folder_;
  std::string socket_ = folder_ / "store.sock";
  pid_t process_ = -1;
};

/// The tensor store's daemon, as the service "store".
class StoreService final : public Service {
 public:
  explicit StoreService(std::string socket)
      : given_(std::move(socket)), prefix_(fmt::format("run-{}-{}", getpid(), now_ns())) {}

  void start(const ServiceNeeds& needs) override {
    if (is_external() || needs.bytes == 0) return;
    const std::string device = needs.device == "cpu" ? "cpu" : fmt::format("cuda:{}", needs.gpu);
    if (own_ && own_->serves() && own_->has(device, needs.bytes)) return;
    own_.reset();
    own_.emplace(device, needs.bytes);
  }
  void connect() override {
    if (is_external()) tensors::Store store(given_);
  }
  void stop() override { own_.reset(); }
  bool is_external() const override { return !given_.empty(); }
  std::string address() const override { return own_ ? own_->socket() : given_; }
  std::string own_prefix() const override { return prefix_; }
  std::map<std::string, std::string> state() override {
    return {{"socket", is_external() ? given_ : std::string("private unix socket")}};
  }

 private:
  std::string given_, prefix_;
  std::optional<OwnStore> own_;
};

struct Options {
  std::string store;
};

const Axes<Options>& options() {
  static const auto all = Axes<Options>().raw(
      "store", &Options::store,
      "socket of a tensor store on this device with room for the tensors; default: a private store");
  return all;
}

const ServiceRegistration registered(
    "store", {.description = "the tensor store's daemon; a private one runs from this executable",
              .options = options().list(),
              .make = [](const Values& values) { return std::make_unique<StoreService>(options().of(values).store); }});

}  // namespace
}  // namespace feedrate::handoff
