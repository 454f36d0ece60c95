#include "libraries/tensors/store/daemon.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <random>

#include "common/clock.hpp"
#include "common/error.hpp"
#include "libraries/tensors/errors.hpp"

namespace feedrate::tensors {
namespace {

using namespace std::chrono_literals;

// The source of an event: the listener, `wake_` or a connection. Connections' sockets have even tags, and their
// processes have odd ones.
constexpr std::uint64_t kListener = 0, kWake = 1, kFirstTag = 2;
constexpr std::uint64_t socket_tag(std::uint64_t id) { return kFirstTag + 2 * id; }
constexpr std::uint64_t process_tag(std::uint64_t id) { return kFirstTag + 2 * id + 1; }

constexpr int kPacketsInTurn = 64;  // packets of one connection before the next connection's turn
constexpr auto kGrace = 500ms;      // time for a process to end after its socket closed
constexpr auto kStalled = 10s;      // a client that does not read its answers for this long is disconnected
constexpr auto kLongestPoll = 100ms;

std::string new_instance() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}", random(), random());
}

}  // namespace

struct Daemon::Connection {
  std::uint64_t id = 0;
  ClientId client = 0;
  std::string name;
  Descriptor socket, process;
  std::optional<Answer> unsent;
  Clock::time_point stalled_at;  // when `unsent` was set
  std::string awaited;           // name of the tensor that the client waits for
  Clock::time_point until;       // the timeout of a wait; when departing, the time at which the client's leases end
  bool departing = false;
};

Daemon::Daemon(ChunkMemory& memory, DaemonOptions options)
    : options_(std::move(options)),
      table_(
          memory, options_.memory, options_.limits,
          [this](Table::Change change, const Description& about) {
            if (change == Table::Change::created) created_.push_back(about.name);
            if (observer_) observer_(change, about);
          },
          unix_ms) {
  identity_ = {options_.device, options_.node, memory.kind(), options_.socket, new_instance()};
  poller_ = Descriptor(epoll_create1(EPOLL_CLOEXEC));
  wake_ = Descriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!poller_ || !wake_) throw Failure(fmt::format("epoll or eventfd: {}", std::strerror(errno)));
  listener_ = listen_at(options_.socket, options_.group);
  watch(listener_.get(), EPOLLIN, kListener);
  watch(wake_.get(), EPOLLIN, kWake);
}

Daemon::~Daemon() { stop_listening(); }

void Daemon::stop_listening() {
  if (!listener_) return;  // the path may belong to another daemon by now
  unlink(options_.socket.c_str());
  listener_ = {};
}

void Daemon::watch(int fd, std::uint32_t events, std::uint64_t tag, bool known) {
  epoll_event event{events, {.u64 = tag}};
  if (epoll_ctl(poller_.get(), known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &event) != 0) {
    throw Failure(fmt::format("epoll_ctl: {}", std::strerror(errno)));
  }
}

void Daemon::run(const std::stop_token& stop) {
  const std::stop_callback waker(stop, [this] { eventfd_write(wake_.get(), 1); });
  std::array<epoll_event, 64> events{};
  const auto poll_events = [&](std::chrono::milliseconds wait) {
    return epoll_wait(poller_.get(), events.data(), static_cast<int>(events.size()), static_cast<int>(wait.count()));
  };
  while (!stop.stop_requested()) {
    const auto wait = check_timers();
    // A client usually sends its next request right after an answer.
    int count = 0;
    for (const auto begin = Clock::now(); count == 0 && Clock::now() - begin < attention();) count = poll_events(0ms);
    if (count == 0) count = poll_events(wait);
    if (count < 0 && errno != EINTR) throw Failure(fmt::format("epoll_wait: {}", std::strerror(errno)));
    for (int i = 0; i < count; ++i) {
      const std::uint64_t tag = events[static_cast<std::size_t>(i)].data.u64;
      if (tag == kListener) {
        accept_all();
      } else if (tag == kWake) {
        run_posted();
      } else {
        const auto found = connections_.find((tag - kFirstTag) / 2);
        if (found == connections_.end()) continue;  // forgotten by an earlier event
        Connection& connection = *found->second;
        if (tag == process_tag(connection.id)) {
          forget(connection.id);  // the process has ended and cannot use the memory any more
        } else {
          read(connection);
        }
      }
    }
    for (const std::string& name : std::exchange(created_, {})) answer_waiters(name);
  }
  // No client may wait for answers that never arrive while the rest of this process shuts down.
  stop_listening();
  connections_.clear();
}

void Daemon::post(std::function<void(Table&)> job) {
  {
    const std::lock_guard lock(mutex_);
    posted_.push_back(std::move(job));
  }
  eventfd_write(wake_.get(), 1);
}

void Daemon::run_posted() {
  eventfd_t ignored = 0;
  eventfd_read(wake_.get(), &ignored);
  std::vector<std::function<void(Table&)>> jobs;
  {
    const std::lock_guard lock(mutex_);
    jobs.swap(posted_);
  }
  for (const auto& job : jobs) job(table_);
}

std::string Daemon::why_unsupported(const Peer& peer) const {
  const bool in_group = options_.group && std::ranges::find(peer.groups, *options_.group) != peer.groups.end();
  if (peer.user != geteuid() && peer.user != 0 && !in_group) {
    return fmt::format("user {} may not use the store of user {}", peer.user, geteuid());
  }
  if (connections_.size() >= options_.connections) {
    return fmt::format("the store has {} connections, which is its limit", connections_.size());
  }
  return "";
}

void Daemon::accept_all() {
  while (true) {
    Descriptor socket(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) return;
      // No descriptor or memory for another connection: check_timers() accepts again later.
      spdlog::warn("store: accept: {}", std::strerror(errno));
      watch(listener_.get(), 0, kListener, true);
      accepting_ = false;
      accepting_stopped_at_ = Clock::now();
      return;
    }
    Peer peer = peer_of(socket.get());
    if (const std::string reason = why_unsupported(peer); !reason.empty()) {
      spdlog::warn("store: rejected process {} of user {}: {}", peer.pid, peer.user, reason);
      send_packet(socket.get(), Answer{to_json(LimitReached(reason))}.text(), {});
      continue;
    }
    auto made = std::make_unique<Connection>();
    made->id = ++last_connection_;
    made->name = fmt::format("process {} of user {}", peer.pid, peer.user);
    made->client = table_.join(made->name);
    made->socket = std::move(socket);
    made->process = std::move(peer.process);
    watch(made->socket.get(), EPOLLIN, socket_tag(made->id));
    // A child may keep the socket open after the process has ended.
    if (made->process) watch(made->process.get(), EPOLLIN, process_tag(made->id));
    connections_.emplace(made->id, std::move(made));
  }
}

void Daemon::read(Connection& connection) {
  if (!connection.awaited.empty()) {  // during a wait, the only event is that the socket closed
    close_socket(connection);
    return;
  }
  if (connection.unsent) {
    send_rest(connection);
    if (connection.departing || connection.unsent) return;
  }
  for (int turn = 0; turn < kPacketsInTurn && !connection.unsent && connection.awaited.empty(); ++turn) {
    switch (receive_packet(connection.socket.get(), packet_, 0)) {
      case Received::nothing:
        return;
      case Received::gone:
        close_socket(connection);
        return;
      case Received::too_long:
        send(connection, {to_json(BadInput("request", "a long packet", "at most 64 KiB"))});
        break;
      case Received::packet:
        serve(connection, packet_.text);
        break;
    }
    if (connection.departing) return;
  }
}

void Daemon::serve(Connection& connection, std::string_view text) {
  Request request;
  try {
    request = parse_request(text);
  } catch (const std::exception& error) {
    send(connection, {to_json(error)});
    return;
  }
  if (request.op == Op::wait) {
    const double seconds = std::clamp(request.timeout_seconds, 0.0, 1e6);
    connection.awaited = request.name;
    connection.until =
        Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    watch(connection.socket.get(), EPOLLRDHUP, socket_tag(connection.id), true);  // wakes only when it closes
    try {
      table_.stat(request.name);
      answer_waiters(request.name);
    } catch (const NotFound&) {  // not yet
    }
    return;
  }
  const Answer answer = act(table_, identity_, connection.client, request);
  // A release has no answer: a client must be able to release a lease without waiting for the daemon.
  if (request.op != Op::release) send(connection, answer);
}

void Daemon::send(Connection& connection, const Answer& answer) {
  switch (send_packet(connection.socket.get(), answer.text(), answer.descriptors)) {
    case Sent::yes:
      return;
    case Sent::gone:
      close_socket(connection, true);
      return;
    case Sent::later:
      connection.unsent = answer;
      connection.stalled_at = Clock::now();
      watch(connection.socket.get(), EPOLLOUT, socket_tag(connection.id), true);
  }
}

void Daemon::send_rest(Connection& connection) {
  const Answer answer = *std::exchange(connection.unsent, std::nullopt);
  watch(connection.socket.get(), EPOLLIN, socket_tag(connection.id), true);
  const auto stalled_at = connection.stalled_at;
  send(connection, answer);
  if (connection.unsent) connection.stalled_at = stalled_at;
}

void Daemon::close_socket(Connection& connection, bool by_us) {
  connection.socket = {};
  connection.unsent.reset();
  connection.awaited.clear();
  connection.departing = true;
  connection.until = Clock::now();
  // A process without leases and without mapped shared chunks cannot affect any memory.
  const Client& client = table_.client(connection.client);
  if (client.leases.empty() && client.chunks.empty()) return;
  // A process that was disconnected still maps its tensors and may write to them as long as it lives.
  connection.until = by_us && connection.process ? Clock::time_point::max() : Clock::now() + kGrace;
}

void Daemon::forget(std::uint64_t id) {
  const auto found = connections_.find(id);
  const Client& client = table_.client(found->second->client);
  if (!client.leases.empty()) {
    spdlog::info("store: {} is gone; ended its {} leases", found->second->name, client.leases.size());
  }
  table_.leave(found->second->client);
  connections_.erase(found);
}

void Daemon::answer_waiters(const std::string& name) {
  for (const auto& [id, connection] : connections_) {
    if (connection->awaited != name) continue;
    connection->awaited.clear();
    watch(connection->socket.get(), EPOLLIN, socket_tag(id), true);
    send(*connection, {{{"ok", true}}});
  }
}

std::chrono::milliseconds Daemon::check_timers() {
  const auto now = Clock::now();
  auto next = now + kLongestPoll;
  std::vector<std::uint64_t> ended;
  if (!accepting_ && now - accepting_stopped_at_ > kLongestPoll) {
    accepting_ = true;
    watch(listener_.get(), EPOLLIN, kListener, true);
  }
  for (const auto& [id, connection] : connections_) {
    if (connection->departing) {
      if (connection->until <= now) {
        ended.push_back(id);
      } else {
        next = std::min(next, connection->until);
      }
    } else if (!connection->awaited.empty()) {
      if (connection->until <= now) {
        const TimedOut late(
            fmt::format("no tensor '{}' appeared within the timeout", std::exchange(connection->awaited, {})));
        watch(connection->socket.get(), EPOLLIN, socket_tag(id), true);
        send(*connection, {to_json(late)});
      } else {
        next = std::min(next, connection->until);
      }
    } else if (connection->unsent && now - connection->stalled_at > kStalled) {
      spdlog::warn("store: {} does not read its answers; disconnected it", connection->name);
      close_socket(*connection, true);
    }
  }
  for (const std::uint64_t id : ended) forget(id);
  if (const auto expiry = table_.expire(); expiry) {
    const std::uint64_t at = unix_ms();
    next = std::min(next, now + std::chrono::milliseconds(*expiry > at ? *expiry - at : 0));
  }
  return std::max(0ms, std::chrono::ceil<std::chrono::milliseconds>(next - Clock::now()));
}

}  // namespace feedrate::tensors
