#pragma once
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "libraries/tensors/socket.hpp"
#include "libraries/tensors/store/requests.hpp"
#include "libraries/tensors/store/table.hpp"

namespace feedrate::tensors {

struct DaemonOptions {
  std::string socket;                         ///< where clients connect
  std::optional<gid_t> group = {};            ///< members may connect, in addition to this process's user and root
  std::size_t memory = std::size_t{1} << 30;  ///< maximum total bytes of chunks
  TableLimits limits = {};
  std::size_t connections = 1024;
  std::string device = "cpu", node = {};
};

/// Owns a device's tensors. One thread serves the socket's clients and the jobs that other threads post.
///
/// A client's leases end when its process has ended, or half a second after it closed its socket while staying alive.
/// If the daemon had to disconnect the client, the leases last until its process ends, because it may still write.
class Daemon {
 public:
  /// Starts listening. Throws BadInput naming `--socket`, Failure.
  Daemon(ChunkMemory&, DaemonOptions);
  ~Daemon();
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  /// Sets the observer of all changes, which the daemon's thread calls. Call this before run().
  void observe(Table::OnChange observer) { observer_ = std::move(observer); }
  /// Serves until a stop is requested. Clients keep their mappings.
  void run(const std::stop_token&);
  /// Queues a job, which the daemon's thread runs with the table. Any thread.
  void post(std::function<void(Table&)> job);
  /// The same, and waits for the job's result. Returns none if a stop is requested first; the job may still run then.
  template <class Job>
  auto ask(const std::stop_token& stop, Job job) {
    using Result = std::invoke_result_t<Job, Table&>;
    const auto promise = std::make_shared<std::promise<Result>>();
    auto result = promise->get_future();
    post([promise, job = std::move(job)](Table& table) { promise->set_value(job(table)); });
    while (result.wait_for(std::chrono::milliseconds(50)) != std::future_status::ready) {
      if (stop.stop_requested()) return std::optional<Result>();
    }
    return std::optional<Result>(result.get());
  }
  const Identity& identity() const { return identity_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Connection;
  void stop_listening();
  void accept_all();
  std::string why_unsupported(const Peer&) const;
  void read(Connection&);
  void serve(Connection&, std::string_view request);
  void send(Connection&, const Answer&);
  void send_rest(Connection&);
  /// `by_us`: the daemon closes the socket, not the client.
  void close_socket(Connection&, bool by_us = false);
  void forget(std::uint64_t id);
  void answer_waiters(const std::string& name);
  void run_posted();
  void watch(int fd, std::uint32_t events, std::uint64_t tag, bool known = false);
  /// Does everything that is due and returns the time until the next action is due.
  std::chrono::milliseconds check_timers();

  DaemonOptions options_;
  Identity identity_;
  Table::OnChange observer_;
  Table table_;
  Descriptor listener_, poller_, wake_;
  std::map<std::uint64_t, std::unique_ptr<Connection>> connections_;
  std::uint64_t last_connection_ = 0;
  bool accepting_ = true;
  Clock::time_point accepting_stopped_at_;  // the last time that no descriptor was left for a connection
  Packet packet_;                           // reused for all packets
  std::vector<std::string> created_;        // names that connections may wait for
  std::mutex mutex_;
  std::vector<std::function<void(Table&)>> posted_;  // protected by mutex_
};

}  // namespace feedrate::tensors
