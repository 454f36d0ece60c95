#pragma once
#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "libraries/tensors/store/requests.hpp"
#include "libraries/tensors/socket.hpp"
#include "libraries/tensors/store/table.hpp"

namespace feedrate::tensors {

struct DaemonOptions {
  std::string socket;                         ///< where clients connect
  std::optional<gid_t> group = {};            ///< whose members may connect, beside this process's user and root
  std::size_t memory = std::size_t{1} << 30;  ///< bytes of chunks, at most
  TableLimits limits = {};
  std::size_t connections = 1024;
  std::string device = "cpu", node = {};
};

/// The process that owns a device's tensors: one thread that serves the socket's clients and whatever other threads
/// post.
///
/// A client's leases end when its process has, or half a second after it closed its socket and lives on. Where the
/// daemon had to cut it off, they last until its process ends, which may still write.
class Daemon {
 public:
  /// Listens from here on. Throws BadInput naming `--socket`, Failure.
  Daemon(ChunkMemory&, DaemonOptions);
  ~Daemon();
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  /// From now on all changes are told, by the daemon's thread. Before it runs.
  void observe(Table::OnChange observer) { observer_ = std::move(observer); }
  /// Serves until a stop is requested. What the clients map stays theirs.
  void run(const std::stop_token&);
  /// Has the daemon's thread do something with its table, soon. Any thread.
  void post(std::function<void(Table&)> job);
  const Identity& identity() const { return identity_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Connection;
  void stop_listening();
  void accept_all();
  std::string refuse(const Peer&) const;
  void read(Connection&);
  void serve(Connection&, std::string_view request);
  void send(Connection&, const Answer&);
  void send_rest(Connection&);
  /// `by_us`: the client did not close it.
  void close_socket(Connection&, bool by_us = false);
  void forget(std::uint64_t id);
  void answer_waiters(const std::string& name);
  void run_posted();
  void watch(int fd, std::uint32_t events, std::uint64_t tag, bool known = false);
  /// What is due by now; then how long nothing else is.
  std::chrono::milliseconds look_at_clock();

  DaemonOptions options_;
  Identity identity_;
  Table::OnChange observer_;
  Table table_;
  Descriptor listener_, poller_, wake_;
  std::map<std::uint64_t, std::unique_ptr<Connection>> connections_;
  std::uint64_t last_connection_ = 0;
  bool accepting_ = true;
  Clock::time_point refused_at_;      // when there was no descriptor for a connection
  Packet packet_;                     // for one after the other
  std::vector<std::string> created_;  // names that connections may wait for
  std::mutex mutex_;
  std::vector<std::function<void(Table&)>> posted_;  // by mutex_
};

}  // namespace feedrate::tensors
