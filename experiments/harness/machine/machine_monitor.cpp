#include "experiments/harness/machine/machine_monitor.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <ctime>
#include <utility>

#include "common/clock.hpp"

namespace feedrate {
namespace {

constexpr double kLeastPeriod = 0.01, kMaxPeriod = 86400;  // seconds

double thread_cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double seconds_since(std::uint64_t begin_ns) { return 1e-9 * static_cast<double>(now_ns() - begin_ns); }

/// Measures the cost of a sample in the thread that takes it.
class CostMeter {
 public:
  struct Cost {
    double seconds = 0, cpu_seconds = 0;
  };
  Cost read() const { return {seconds_since(begin_), thread_cpu_seconds() - cpu_}; }

 private:
  std::uint64_t begin_ = now_ns();
  double cpu_ = thread_cpu_seconds();
};

void keep(MachineState& state, const CostMeter::Cost& cost) {
  state.sample_cost_seconds_max = std::max(state.sample_cost_seconds_max, cost.seconds);
  state.sample_cpu_seconds_max = std::max(state.sample_cpu_seconds_max, cost.cpu_seconds);
}

}  // namespace

MachineMonitor::MachineMonitor(GpuSource gpu, double period_seconds, std::filesystem::path proc)
    : gpu_(std::move(gpu)), proc_(std::move(proc)) {
  state_.period_seconds = std::clamp(period_seconds, kLeastPeriod, kMaxPeriod);
  const CostMeter meter;
  begin_ = read_host(proc_);
  keep(state_, meter.read());
  if (gpu_) thread_ = std::jthread([this](const std::stop_token& stopping) { watch(stopping); });
}

MachineState MachineMonitor::stop() {
  std::call_once(stopped_, [this] {
    const CostMeter meter;
    const HostReading end = read_host(proc_);  // first, because waiting for the thread is not part of the phase
    const auto cost = meter.read();
    if (thread_.joinable()) {
      thread_.request_stop();
      thread_.join();
    }
    keep(state_, cost);
    state_.host = host_use(begin_, end);
  });
  return state_;
}

void MachineMonitor::watch(const std::stop_token& stopping) {
  using Clock = std::chrono::steady_clock;
  const auto period = std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(state_.period_seconds));
  std::mutex mutex;
  std::condition_variable_any wake;
  std::unique_lock lock(mutex);
  auto next = Clock::now() + period;
  for (sample(stopping);; next = std::max(next + period, Clock::now())) {
    wake.wait_until(lock, stopping, next, [] { return false; });  // until `next` or a stop request
    const bool last = stopping.stop_requested();
    sample(stopping);
    if (last) return;
  }
}

void MachineMonitor::sample(const std::stop_token& stopping) {
  const CostMeter meter;
  const double t = seconds_since(begin_.at_ns);
  auto gpu = gpu_(!stopping.stop_requested());
  keep(state_, meter.read());
  if (!gpu) return;
  if (stopping.stop_requested())
    gpu->pcie_rx_bytes_per_second = gpu->pcie_tx_bytes_per_second = {};  // the last interval is partly idle
  state_.samples.push_back({t, *gpu});
}

}  // namespace feedrate
