// A broker in one file: it has its own server process, an axis, a limit, a guarantee and workers that `feedrate worker`
// can run. No other file names any of these.
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <deque>
#include <optional>
#include <thread>

#include "common/error.hpp"
#include "common/own_executable.hpp"
#include "common/service.hpp"
#include "common/socket_folder.hpp"
#include "variants/feeding/queue_watch.hpp"
#include "variants/feeding/worker.hpp"

namespace feedrate {
namespace {

// --- the protocol: a stream of requests and answers on a Unix socket -------------------------------------------------

enum class Op : std::uint8_t {
  put,     ///< appends one element, whose `bytes` bytes follow the request; no answer
  take,    ///< answers with at most `count` elements, which this connection then holds
  settle,  ///< drops the `count` elements that this connection has held longest; no answer
  length,  ///< answers with the number of elements in the list and no bytes
};
struct Request {
  Op op{};
  char list[55] = {};
  std::uint32_t count = 0, bytes = 0;
};
struct Answer {
  std::uint32_t count = 0, bytes = 0;  ///< number of elements and their bytes; each starts with 4 bytes of length
};

bool read_all(int socket, void* to, std::size_t bytes) {
  auto* at = static_cast<char*>(to);
  while (bytes > 0) {
    const ssize_t n = recv(socket, at, bytes, 0);
    if (n == 0 || (n < 0 && errno != EINTR)) return false;
    if (n > 0) at += n, bytes -= static_cast<std::size_t>(n);
  }
  return true;
}
bool write_all(int socket, const void* from, std::size_t bytes) {
  const auto* at = static_cast<const char*>(from);
  while (bytes > 0) {
    const ssize_t n = send(socket, at, bytes, MSG_NOSIGNAL);
    if (n < 0 && errno != EINTR) return false;
    if (n > 0) at += n, bytes -= static_cast<std::size_t>(n);
  }
  return true;
}

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) throw BadInput("--depot", path, "a socket path of at most 107 bytes");
  std::memcpy(address.sun_path, path.c_str(), path.size());
  return address;
}

// --- the server's process --------------------------------------------------------------------------------------------

class Server {
 public:
  explicit Server(const std::string& path) : listener_(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const sockaddr_un address = address_of(path);
    if (bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 || listen(listener_, 16) != 0)
      throw BadInput("ARGUMENT", path, "a path at which a socket can be created");
  }
  void run() {
    while (true) {
      std::vector<pollfd> all{{listener_, POLLIN, 0}};
      for (const auto& [socket, held] : held_) all.push_back({socket, POLLIN, 0});
      if (poll(all.data(), all.size(), -1) < 0) continue;
      if (all[0].revents != 0) held_[accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC)];
      for (std::size_t i = 1; i < all.size(); ++i) {
        if (all[i].revents != 0 && !serve(all[i].fd)) drop(all[i].fd);
      }
    }
  }

 private:
  using List = std::deque<std::string>;
  bool serve(int socket) {
    Request request;
    if (!read_all(socket, &request, sizeof request)) return false;
    List& list = lists_[request.list];
    auto& held = held_[socket];
    if (request.op == Op::put) {
      std::string element(request.bytes, 0);
      if (!read_all(socket, element.data(), element.size())) return false;
      list.push_back(std::move(element));
    } else if (request.op == Op::settle) {
      held.erase(held.begin(), held.begin() + std::min<std::ptrdiff_t>(request.count, std::ssize(held)));
    } else if (request.op == Op::length) {
      const Answer answer{static_cast<std::uint32_t>(list.size()), 0};
      return write_all(socket, &answer, sizeof answer);
    } else {
      std::string bytes;
      Answer answer;
      for (; answer.count < request.count && !list.empty(); ++answer.count) {
        const auto length = static_cast<std::uint32_t>(list.front().size());
        bytes.append(reinterpret_cast<const char*>(&length), sizeof length).append(list.front());
        held.emplace_back(request.list, std::move(list.front()));
        list.pop_front();
      }
      answer.bytes = static_cast<std::uint32_t>(bytes.size());
      return write_all(socket, &answer, sizeof answer) && write_all(socket, bytes.data(), bytes.size());
    }
    return true;
  }
  /// Puts everything that the connection held back into its lists: this redelivery is the queue's guarantee.
  void drop(int socket) {
    auto& held = held_[socket];
    for (auto one = held.rbegin(); one != held.rend(); ++one) lists_[one->first].push_front(std::move(one->second));
    held_.erase(socket);
    close(socket);
  }

  int listener_;
  std::map<std::string, List> lists_;
  std::map<int, std::deque<std::pair<std::string, std::string>>> held_;  // keyed by connection: list and element
};

// --- a client --------------------------------------------------------------------------------------------------------

class Client {
 public:
  explicit Client(const std::string& path) : socket_(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const sockaddr_un address = address_of(path);
    if (connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      close(socket_);
      throw ServiceFailure(fmt::format("depot {}: {}", path, std::strerror(errno)));
    }
  }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client() { close(socket_); }

  void put(const std::string& list, const std::byte* element, std::size_t bytes) {
    send_request(Op::put, list, 0, static_cast<std::uint32_t>(bytes));
    check(write_all(socket_, element, bytes));
  }
  /// Takes at most `most` elements; the server keeps them until they are settled.
  std::vector<std::string> take(const std::string& list, std::size_t most) {
    send_request(Op::take, list, static_cast<std::uint32_t>(most));
    Answer answer;
    check(read_all(socket_, &answer, sizeof answer));
    std::vector<std::string> elements(answer.count);
    for (std::string& element : elements) {
      std::uint32_t length = 0;
      check(read_all(socket_, &length, sizeof length));
      element.resize(length);
      check(read_all(socket_, element.data(), length));
    }
    return elements;
  }
  void settle(std::size_t count) { send_request(Op::settle, "", static_cast<std::uint32_t>(count)); }
  std::uint32_t length(const std::string& list) {
    send_request(Op::length, list, 0);
    Answer answer;
    check(read_all(socket_, &answer, sizeof answer));
    return answer.count;
  }

 private:
  void send_request(Op op, const std::string& list, std::uint32_t count, std::uint32_t bytes = 0) {
    Request request{op, {}, count, bytes};
    std::memcpy(request.list, list.data(), std::min(list.size(), sizeof request.list - 1));
    check(write_all(socket_, &request, sizeof request));
  }
  static void check(bool done) {
    if (!done) throw ServiceFailure("depot: the server closed the connection");
  }
  int socket_;
};

// --- the service -----------------------------------------------------------------------------------------------------

class Depot final : public Service {
 public:
  explicit Depot(std::string path) : given_(std::move(path)), address_(given_) {}
  ~Depot() override { Depot::stop(); }

  void start(const ServiceNeeds&) override {
    if (is_external() || (process_ > 0 && listens(address_))) return;
    stop();
    folder_.emplace();
    address_ = *folder_ / "depot.sock";
    process_ = start_feedrate({"helper", "depot", address_}, {});
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (true) {
      try {
        return connect();
      } catch (const Failure&) {
        if (std::chrono::steady_clock::now() > until) throw;
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
      }
    }
  }
  void connect() override { Client{address_}; }
  void stop() override {
    if (process_ <= 0) return;
    kill(process_, SIGTERM);
    await_end(process_);
    process_ = -1;
  }
  bool is_external() const override { return !given_.empty(); }
  std::string address() const override { return address_; }
  std::string own_prefix() const override { return fmt::format("run-{}", getpid()); }
  std::map<std::string, std::string> state() override {
    return {{"socket", is_external() ? given_ : "private unix socket"}};
  }
  void add_limits(LimitList& limits) override {
    limits.add({"depot_round_trip_ns", Quantity::nanoseconds, service_scope("depot"),
                "median round trip of a length query for an empty list over one connection"},
               [this] {
                 Client client(address_);
                 return median_ns(
                     200, [&] { client.length("limit"); }, kLongestReadingSeconds);
               });
  }

 private:
  std::string given_, address_;
  std::optional<SocketFolder> folder_;
  pid_t process_ = -1;
};

struct ServiceOptions {
  std::string depot;
};
const Axes<ServiceOptions>& service_options() {
  static const auto all = Axes<ServiceOptions>().raw("depot", &ServiceOptions::depot,
                                                     "socket of a running depot; default: start a private one");
  return all;
}

int serve_depot(const std::vector<std::string>& arguments) {
  if (arguments.size() != 1) throw BadInput("ARGUMENT", "", "the path of the socket");
  signal(SIGTERM, SIG_DFL);
  prctl(PR_SET_PDEATHSIG, SIGTERM);  // ends this process even if the session that started it is killed
  Server(arguments[0]).run();
  return 0;
}

const ServiceRegistration service(
    "depot", {.description = "example: a server that requeues the elements of a lost client",
              .options = service_options().list(),
              .make = [](const Values& values) { return std::make_unique<Depot>(service_options().of(values).depot); },
              .serve = serve_depot});

// --- the queue -------------------------------------------------------------------------------------------------------

/// The queue's axis: the maximum number of messages that a worker takes at once.
struct Options {
  unsigned max_taken = 64;
};
const Axes<Options>& own_axes() {
  static const auto all = Axes<Options>().number("depot-take", &Options::max_taken, {1, 1024},
                                                 "maximum number of messages that a worker takes at once");
  return all;
}

std::string tasks_of(const QueueConfig& config) {
  return config.external_worker ? "tasks" : config.service->own_prefix() + ":tasks";
}
std::string results_of(unsigned producer) { return fmt::format("results-{}", producer); }

class DepotProducer final : public Producer {
 public:
  explicit DepotProducer(const QueueConfig& config)
      : client_(config.service->address()),
        tasks_(tasks_of(config)),
        stride_(config.in_stride()),
        slots_(stride_ * config.point.batch) {}
  Messages reserve(std::size_t n) override { return {slots_.data(), stride_, std::min(n, slots_.size() / stride_)}; }
  void publish(std::size_t n) override {
    for (std::size_t i = 0; i < n; ++i) client_.put(tasks_, slots_.data() + i * stride_, stride_);
  }

 private:
  Client client_;
  std::string tasks_;
  std::size_t stride_;
  std::vector<std::byte> slots_;
};

class DepotCollector final : public Collector {
 public:
  DepotCollector(const QueueConfig& config, unsigned index)
      : client_(config.service->address()), results_(results_of(index)), stride_(config.out_stride()) {}
  ConstMessages poll(std::size_t n) override {
    if (waiting_ == 0) {
      const auto taken = client_.take(results_, n);
      slots_.resize(stride_ * taken.size());
      for (std::size_t i = 0; i < taken.size(); ++i) {
        std::memcpy(slots_.data() + i * stride_, taken[i].data(), std::min(stride_, taken[i].size()));
      }
      waiting_ = taken.size();
    }
    return {slots_.data() + slots_.size() - waiting_ * stride_, stride_, std::min(n, waiting_)};
  }
  void release(std::size_t n) override {
    waiting_ -= n;
    client_.settle(n);
  }

 private:
  Client client_;
  std::string results_;
  std::size_t stride_, waiting_ = 0;
  std::vector<std::byte> slots_;
};

class DepotBroker final : public Broker {
 public:
  explicit DepotBroker(const QueueConfig& config)
      : client_(config.service->address()),
        tasks_(tasks_of(config)),
        max_(std::min<std::size_t>(own_axes().of(config.point.own).max_taken, config.point.batch)),
        in_stride_(config.in_stride()),
        out_stride_(config.out_stride()),
        in_(config.device.allocate_host(max_ * in_stride_, memory_of(config))),
        out_(config.device.allocate_host(max_ * out_stride_, memory_of(config))) {}
  std::optional<Batch> fetch() override {
    if (out_is_used_) return std::nullopt;
    const auto taken = client_.take(tasks_, max_);
    if (taken.empty()) return std::nullopt;
    for (std::size_t i = 0; i < taken.size(); ++i) {
      std::memcpy(in_.data() + i * in_stride_, taken[i].data(), std::min(in_stride_, taken[i].size()));
    }
    out_is_used_ = true;
    return Batch{{in_.data(), in_stride_, taken.size()}, {out_.data(), out_stride_, taken.size()}};
  }
  void complete(const Batch& batch) override {
    for (std::size_t i = 0; i < batch.out.count; ++i) {
      client_.put(results_of(producer_of(batch.out.header(i).id)), out_.data() + i * out_stride_, out_stride_);
    }
    client_.settle(batch.in.count);
    out_is_used_ = false;
  }

 private:
  static HostMemory memory_of(const QueueConfig& config) {
    return Transfers::instance().get("--transfer", config.point.transfer).memory;
  }
  Client client_;
  std::string tasks_;
  std::size_t max_, in_stride_, out_stride_;
  Buffer in_, out_;
  bool out_is_used_ = false;
};

class DepotQueue final : public Queue {
 public:
  explicit DepotQueue(const QueueConfig& config) : config_(config) {
    if (config.external_worker) return;
    workers_.emplace(config_, config.point.workers,
                     [this](unsigned) { return std::make_unique<DepotBroker>(config_); });
  }
  std::unique_ptr<Producer> producer(unsigned) override { return std::make_unique<DepotProducer>(config_); }
  std::unique_ptr<Collector> collector(unsigned i) override { return std::make_unique<DepotCollector>(config_, i); }
  void start() override {
    if (workers_) workers_->start();
  }
  void stop(bool drain) override {
    if (workers_) workers_->stop(drain);
  }
  void check() override {
    if (workers_) workers_->check();
  }
  Cost cost() const override { return {.host_threads = workers_ ? workers_->size() : 0}; }

 private:
  QueueConfig config_;
  std::optional<WorkerPool> workers_;
};

class DepotWatch final : public QueueWatch {
 public:
  explicit DepotWatch(const QueueConfig& config) : path_(config.service->address()) {}
  std::string source() const override { return "the depot " + path_; }
  double longest_silence() const override { return 5; }
  void collect(const Add& add) override {
    add("feedrate_queue_depth", "Elements waiting for a worker.", Client(path_).length("tasks"));
  }

 private:
  std::string path_;
};

const QueueRegistration registered(
    "depot", {.description = "example: a broker with its own server process",
              .guarantee = {Delivery::at_least_once, "per producer with one worker", true},
              .uses_transfer = true,
              .service = "depot",
              .axes = own_axes().list(),
              .make = make_queue<DepotQueue>,
              .bounds = [](const BoundedPoint&, Bounds& bounds) { bounds.time(2 * floor_of("depot_round_trip_ns")); },
              .workers = ExternalWorkers{
                  .broker = [](const QueueConfig& config, const std::string&) -> std::unique_ptr<Broker> {
                    QueueConfig shared = config;
                    shared.external_worker = true;  // takes the tasks that clients in any process submit
                    return std::make_unique<DepotBroker>(shared);
                  },
                  .watch = [](const QueueConfig& config) { return std::make_unique<DepotWatch>(config); }}});

}  // namespace
}  // namespace feedrate
