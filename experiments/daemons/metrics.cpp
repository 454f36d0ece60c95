#include "experiments/daemons/metrics.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <filesystem>

#include "common/error.hpp"

namespace feedrate {

struct MetricsEndpoint::State {
  explicit State(MetricsSource& source) : source(source) {}
  ~State() {
    if (server != nullptr) close(server);
    if (module != nullptr) dlclose(module);
  }

  MetricsSource& source;
  void* module = nullptr;
  void* server = nullptr;
  decltype(&feedrate_metrics_close) close = nullptr;
};

MetricsEndpoint::MetricsEndpoint(const std::string& address, const Label& label, MetricsSource& source)
    : state_(std::make_unique<State>(source)) {
  const auto path = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "feedrate_metrics.so";
  State& state = *state_;
  state.module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (state.module == nullptr) {
    throw BadInput(
        "--metrics", address,
        fmt::format("no value in this build: {} (install Debian's prometheus-cpp-dev and build again)", dlerror()));
  }
  const auto open = reinterpret_cast<decltype(&feedrate_metrics_open)>(dlsym(state.module, "feedrate_metrics_open"));
  state.close = reinterpret_cast<decltype(&feedrate_metrics_close)>(dlsym(state.module, "feedrate_metrics_close"));
  using Add = void (*)(void* to, const FeedrateMetric*);
  const FeedrateMetricsSource asked{
      &state,
      [](void* self, Add add, void* to) {
        static_cast<State*>(self)->source.collect([&](const FeedrateMetric& metric) { add(to, &metric); });
      },
      [](void* self, char* reason, std::size_t size) {
        const std::string why = static_cast<State*>(self)->source.why_unhealthy();
        std::snprintf(reason, size, "%s", why.c_str());
        return why.empty() ? 1 : 0;
      },
      label.name, label.value.c_str()};
  std::array<char, 256> reason{};
  state.server = open(address.c_str(), &asked, reason.data(), reason.size());
  if (state.server == nullptr) {
    throw BadInput("--metrics", address, fmt::format("[HOST:]PORT with a free port ({})", reason.data()));
  }
}

MetricsEndpoint::~MetricsEndpoint() = default;

}  // namespace feedrate
