#include <fmt/format.h>
#include <linux/futex.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <mutex>
#include <nlohmann/json.hpp>
#include <tuple>
#include <unordered_map>

#include "common/error.hpp"
#include "feedrate/tensors.hpp"
#include "libraries/tensors/protocol.hpp"
#include "libraries/tensors/socket.hpp"

namespace feedrate::tensors {
namespace {

using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

// A stream that writes a version cannot wake waiters, so they poll at this interval.
constexpr auto kLongestSleep = std::chrono::microseconds(200);

void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t expected, std::chrono::nanoseconds limit) {
  const timespec time{limit.count() / 1'000'000'000, limit.count() % 1'000'000'000};
  syscall(SYS_futex, &word, FUTEX_WAIT, expected, &time, nullptr, 0);
}
void futex_wake_all(std::atomic<std::uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

constexpr std::size_t kMaxDescriptors = 2;  // per answer

Json request_of(const char* op, const std::string& name) { return {{"op", op}, {"name", name}}; }

}  // namespace

/// The connection to one run of the daemon. Mappings exist as long as anything uses them.
struct Session {
  Session(const std::string& path, std::chrono::milliseconds longest) : patience(longest), socket(connect_to(path)) {}

  struct Own {
    std::shared_ptr<Mapping> chunk;  ///< null if the tensor is in a shared chunk
    unsigned leases = 0;
  };
  const pid_t process = getpid();
  const std::chrono::milliseconds patience;  // timeout for an answer
  std::mutex mutex;                          // protects all members below
  Descriptor socket;
  bool broken = false;  // answers no longer match their requests, or none arrive
  std::unordered_map<std::uint64_t, std::shared_ptr<Mapping>>
      parts;  // parts of the board; declared before `memory`, whose device may access them
  std::unique_ptr<ChunkMemory> memory;
  std::unordered_map<std::uint64_t, std::shared_ptr<Mapping>> chunks;  // shared chunks
  std::unordered_map<std::uint64_t, Own> held;                         // keyed by generation
  Packet packet;                                                       // the last answer's

  /// Sends a request and waits up to the timeout plus `longer` for its answer. The caller holds the mutex. Throws
  /// Unreachable, or the error in the daemon's answer.
  Json ask(const Json& request, std::chrono::milliseconds longer = 0ms);
  /// Maps the descriptors of an answer to `create` or `get`. The caller holds the mutex.
  void keep(const Json& answer, const Description& about);
  /// Whether the daemon has closed its end.
  bool ended() const {
    char byte = 0;
    return recv(socket.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
  }
};

Json Session::ask(const Json& request, std::chrono::milliseconds longer) {
  const std::string text = request.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > kMaxPacketBytes) throw BadInput("request", fmt::format("{} bytes", text.size()), "at most 64 KiB");
  if (!broken) {
    broken = true;  // until the answer has arrived
    const auto sent = send_packet(socket.get(), text, {}, patience);
    // If the request could not be sent, the daemon may have sent the reason before it closed its end.
    const auto received =
        await_packet(socket.get(), packet, kMaxDescriptors, sent == Sent::yes ? patience + longer : 0ms);
    broken = received != Received::packet;
  }
  if (broken) throw Unreachable(fmt::format("the store does not answer '{}'", request.value("op", "a request")));
  Json answer = Json::parse(packet.text, nullptr, false);
  throw_if_error(answer);
  return answer;
}

void Session::keep(const Json& answer, const Description& about) {
  std::size_t next = 0;
  Descriptor chunk;
  for (const Json& what : answer.value("descriptors", Json::array())) {
    if (next == packet.descriptors.size()) throw Failure("the daemon sent fewer descriptors than it announced");
    Descriptor descriptor = std::move(packet.descriptors[next++]);
    if (what == "words") {
      parts[about.slot / kSlotsInPart] = memfd_memory()->map(std::move(descriptor), "", kPartBytes);
    } else {
      chunk = std::move(descriptor);
    }
  }
  if (!chunk && !answer.contains("handle")) return;  // already mapped
  std::shared_ptr<Mapping> mapping =
      memory->map(std::move(chunk), of_hex(answer.value("handle", "")), answer.at("chunk_bytes"));
  (answer.at("shared") ? chunks[about.place.chunk] : held[about.generation].chunk) = std::move(mapping);
}

struct Tensor::Held {
  Held(std::shared_ptr<Session> of, std::uint64_t lease_id, Description what)
      : session(std::move(of)), lease(lease_id), about(std::move(what)) {
    part = session->parts.at(about.slot / kSlotsInPart);
    words = static_cast<TensorWords*>(part->data()) + about.slot % kSlotsInPart;
    Session::Own& own = session->held[about.generation];
    if (about.place.chunk != 0) {
      mapping = own.chunk ? own.chunk : session->chunks.at(about.place.chunk);
      data = static_cast<std::byte*>(mapping->data()) + about.place.offset;
    }
    ++own.leases;
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  ~Held() {
    // In a forked child the lease belongs to the parent, locks may stay held forever, and GPU calls are not allowed. In
    // other cases it is unknown whether the GPU still uses the memory. Either way, keep everything; the lease ends with
    // the process.
    if (getpid() != session->process || !session->memory->settle()) {
      // If this small allocation fails, the process ends, and the lease with it.
      // NOLINTNEXTLINE(bugprone-unhandled-exception-at-new)
      new auto(std::tuple(std::move(session), std::move(mapping), std::move(part)));
      return;
    }
    const std::lock_guard lock(session->mutex);
    mapping.reset();  // before the daemon learns that it may free the memory
    const auto own = session->held.find(about.generation);
    if (--own->second.leases == 0) session->held.erase(own);
    if (session->broken) return;
    const std::string text = Json{{"op", "release"}, {"lease", lease}}.dump();
    // If a socket stays full for this long, its daemon is stuck.
    if (send_packet(session->socket.get(), text, {}, std::chrono::seconds(1)) != Sent::yes) session->broken = true;
  }

  std::shared_ptr<Session> session;
  std::uint64_t lease;
  Description about;
  std::shared_ptr<Mapping> mapping, part;
  std::byte* data = nullptr;
  TensorWords* words = nullptr;
  std::atomic<std::uint64_t> queued{0};  ///< the last version whose publication this process queued on a stream

  WordPlace place_of(const std::atomic<std::uint64_t>& word) const {
    auto* const base = static_cast<std::byte*>(part->data());
    return {base, kPartBytes, static_cast<std::size_t>(reinterpret_cast<const std::byte*>(&word) - base)};
  }
};

const std::string& Tensor::name() const { return held_->about.name; }
std::uint64_t Tensor::generation() const { return held_->about.generation; }
const Layout& Tensor::layout() const { return held_->about.layout; }
std::size_t Tensor::bytes() const { return held_->about.bytes; }
void* Tensor::data() const { return held_->data; }
TensorWords& Tensor::words() const { return *held_->words; }
int Tensor::cuda_index() const { return held_->session->memory->cuda_index(); }

void Tensor::write(std::span<const std::byte> from, std::size_t offset) const {
  check_part(from.size(), offset);
  held_->session->memory->copy(held_->data + offset, from.data(), from.size());
}
void Tensor::read(std::span<std::byte> to, std::size_t offset) const {
  check_part(to.size(), offset);
  held_->session->memory->copy(to.data(), held_->data + offset, to.size());
}
void Tensor::check_part(std::size_t bytes, std::size_t offset) const {
  if (offset <= this->bytes() && bytes <= this->bytes() - offset) return;
  throw BadInput("bytes", fmt::format("{} at offset {}", bytes, offset),
                 fmt::format("a range within the {} bytes of tensor '{}'", this->bytes(), name()));
}

bool Tensor::deleted() const { return words().generation.load(std::memory_order_acquire) != generation(); }
bool Tensor::sealed() const { return words().sealed.load(std::memory_order_acquire) != 0; }
std::uint64_t Tensor::version() const { return words().done.load(std::memory_order_acquire); }

std::uint64_t Tensor::publish() {
  TensorWords& own = words();
  const std::uint64_t next = next_version();
  own.begun.store(next, std::memory_order_relaxed);
  own.done.store(next, std::memory_order_seq_cst);
  own.wake.fetch_add(1, std::memory_order_seq_cst);
  if (own.waiters.load(std::memory_order_seq_cst) != 0) futex_wake_all(own.wake);
  return next;
}

bool Tensor::wait_for(std::uint64_t version, std::chrono::nanoseconds limit) const {
  TensorWords& own = words();
  const auto deadline = Clock::now() + limit;
  if (this->version() >= version) return true;
  own.waiters.fetch_add(1, std::memory_order_seq_cst);
  bool came = false;
  while (true) {
    const std::uint32_t seen = own.wake.load(std::memory_order_seq_cst);
    if ((came = this->version() >= version)) break;
    const auto left = std::chrono::nanoseconds(deadline - Clock::now());
    if (left.count() <= 0) break;
    futex_wait(own.wake, seen, std::min<std::chrono::nanoseconds>(left, kLongestSleep));
  }
  own.waiters.fetch_sub(1, std::memory_order_seq_cst);
  return came;
}

std::uint64_t Tensor::next_version() const { return std::max(version(), held_->queued.load()) + 1; }

std::uint64_t Tensor::publish_on(void* stream) {
  const std::uint64_t next = next_version();
  ChunkMemory& memory = *held_->session->memory;
  memory.write_word(stream, held_->place_of(words().begun), next);
  memory.write_word(stream, held_->place_of(words().done), next);
  held_->queued = next;
  return next;
}

void Tensor::wait_on(void* stream, std::uint64_t version) const {
  // A later publication by this process must get a later version.
  for (std::uint64_t known = held_->queued; known < version && !held_->queued.compare_exchange_weak(known, version);) {
  }
  held_->session->memory->await_word(stream, held_->place_of(words().done), version);
}

void Tensor::check_halves() const {
  if (layout().shape.empty() || layout().shape.front() != 2 || !layout().strides.empty()) {
    throw BadInput("begin_half", name(), "a tensor whose first dimension is 2, without strides");
  }
  if (sealed()) throw BadInput("begin_half", name(), "a tensor that is not sealed");
}

std::span<std::byte> Tensor::half(std::uint64_t version) const {
  const std::size_t half = bytes() / 2;
  return {held_->data + version % 2 * half, half};
}

std::span<std::byte> Tensor::begin_half() {
  check_halves();
  const std::uint64_t next = next_version();
  // This is an exchange so that no following write can move before it.
  words().begun.exchange(next, std::memory_order_acq_rel);
  return half(next);
}

std::span<std::byte> Tensor::begin_half_on(void* stream) {
  check_halves();
  const std::uint64_t next = next_version();
  held_->session->memory->write_word(stream, held_->place_of(words().begun), next);
  return half(next);
}

bool Tensor::still_holds(std::uint64_t version) const {
  // The writer returns to this half with the version after the next. This is an addition so that no preceding read can
  // move after it.
  return words().begun.fetch_add(0, std::memory_order_acq_rel) <= version + 1;
}

std::uint64_t Tensor::read_half(std::span<std::byte> to) const {
  const std::size_t half = bytes() / 2;
  if (to.size() != half) throw BadInput("read_half", fmt::format("{} bytes", to.size()), fmt::format("{}", half));
  while (true) {
    const std::uint64_t version = this->version();
    held_->session->memory->copy(to.data(), this->half(version).data(), half);
    if (still_holds(version)) return version;
  }
}

struct Store::State {
  State(std::string where, StoreOptions how) : path(std::move(where)), options(how) { session(); }

  /// The session with the running daemon. Throws Unreachable.
  std::shared_ptr<Session> session() {
    if (getpid() != process)
      throw Failure("this store was connected before a fork: only the process that connected it may use it");
    const std::lock_guard lock(mutex);
    if (current) {
      const std::lock_guard lock_session(current->mutex);
      if (!current->broken && !current->ended()) return current;
      current->broken = true;
    }
    names.clear();
    auto made = std::make_shared<Session>(path, options.patience);
    const std::lock_guard lock_session(made->mutex);
    made->memory = memory_of_kind(made->ask({{"op", "status"}}).at("kind"));
    return current = made;
  }
  Json ask(const Json& request) {
    const auto with = session();
    const std::lock_guard lock(with->mutex);
    return with->ask(request);
  }
  std::shared_ptr<Tensor::Held> lease(const Json& request) {
    const auto with = session();
    std::shared_ptr<Tensor::Held> made;
    {
      const std::lock_guard lock(with->mutex);
      const Json answer = with->ask(request);
      try {
        Description about = description_of(answer.at("tensor"));
        with->keep(answer, about);
        made = std::make_shared<Tensor::Held>(with, answer.at("lease"), std::move(about));
      } catch (...) {
        // The daemon believes that this process has mapped memory that it could not map, so further requests need a new
        // connection. The old connection stays open as long as tensors leased through it.
        with->broken = true;
        throw;
      }
    }
    return made;
  }
  /// Remembers that the name refers to this tensor, as far as this process knows.
  void remember(const std::shared_ptr<Tensor::Held>& held) {
    const std::lock_guard lock(mutex);
    names[held->about.name] = held;
    if (names.size() > 2 * max_names) forget_ended();
  }
  std::shared_ptr<Tensor::Held> known(const std::string& name) {
    const auto with = session();
    std::shared_ptr<Tensor::Held> held;  // destroyed after the lock is released: the destructor may wait for the GPU
    const std::lock_guard lock(mutex);
    const auto found = names.find(name);
    if (found != names.end()) held = found->second.lock();
    const bool fresh = held && held->session == with &&
                       held->words->generation.load(std::memory_order_acquire) == held->about.generation;
    return fresh ? held : nullptr;
  }
  void forget_ended() {
    std::erase_if(names, [](const auto& one) { return one.second.expired(); });
    max_names = std::max<std::size_t>(names.size(), 1024);
  }

  const pid_t process = getpid();
  const std::string path;
  const StoreOptions options;
  std::mutex mutex;  // protects all members below; locked before a session's mutex
  std::shared_ptr<Session> current;
  std::unordered_map<std::string, std::weak_ptr<Tensor::Held>> names;
  std::size_t max_names = 1024;
};

Store::Store(std::string socket, StoreOptions options) : state_(std::make_shared<State>(std::move(socket), options)) {}
Store::~Store() = default;
Store::Store(Store&&) noexcept = default;
Store& Store::operator=(Store&&) noexcept = default;

namespace {

Json creation_of(const std::string& name, const Layout& layout, const CreateOptions& options) {
  check_name(name);
  check_ttl(options);  // JSON has no infinity: the request would read as "never"
  bytes_of(layout);
  Json request{{"op", "create"}, {"name", name}, {"dtype", name_of(layout.dtype)}, {"shape", layout.shape}};
  if (!layout.strides.empty()) request["strides"] = layout.strides;
  if (options.pinned) request["pin"] = true;
  if (options.evict) request["evict"] = true;
  if (options.ttl_seconds) request["ttl"] = *options.ttl_seconds;
  if (options.replace) request["replace"] = true;
  return request;
}

}  // namespace

Tensor Store::create(const std::string& name, const Layout& layout, const CreateOptions& options) {
  Tensor made(state_->lease(creation_of(name, layout, options)));
  state_->remember(made.held_);
  return made;
}

Tensor Store::stage(const std::string& name, const Layout& layout, const CreateOptions& options) {
  Json request = creation_of(name, layout, options);
  request["staged"] = true;
  return Tensor(state_->lease(request));
}

void Tensor::commit() const {
  Session& session = *held_->session;
  if (getpid() != session.process)
    throw Failure("this tensor was leased before a fork: only the process that leased it may use it");
  const std::lock_guard lock(session.mutex);
  session.ask({{"op", "commit"}, {"lease", held_->lease}});
}

Tensor Store::get(const std::string& name) {
  if (auto held = state_->known(name)) return Tensor(std::move(held));
  Tensor found(state_->lease(request_of("get", name)));
  state_->remember(found.held_);
  return found;
}

Tensor Store::wait(const std::string& name, std::chrono::nanoseconds limit) {
  const auto deadline = Clock::now() + limit;
  while (true) {
    try {
      return get(name);
    } catch (const NotFound&) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
      if (left.count() <= 0) throw TimedOut(fmt::format("no tensor '{}' appeared within the timeout", name));
      // A separate connection, so that other threads' requests do not wait as well.
      Session waiting(state_->path, state_->options.patience);
      Json request = request_of("wait", name);
      request["timeout"] = std::chrono::duration<double>(left).count();
      waiting.ask(request, left);
    }
  }
}

void Store::remove(const std::string& name, std::uint64_t generation) {
  Json request = request_of("delete", name);
  if (generation != 0) request["generation"] = generation;
  state_->ask(request);
}

Description Store::stat(const std::string& name) {
  return description_of(state_->ask(request_of("stat", name)).at("tensor"));
}

std::vector<Description> Store::list() {
  std::vector<Description> all;
  for (bool more = true; more;) {
    const Json answer = state_->ask({{"op", "list"}, {"after", all.empty() ? "" : all.back().name}});
    for (const Json& one : answer.at("tensors")) all.push_back(description_of(one));
    more = answer.at("more") && !answer.at("tensors").empty();
  }
  return all;
}

void Store::pin(const std::string& name, bool pinned) { state_->ask(request_of(pinned ? "pin" : "unpin", name)); }
void Store::seal(const std::string& name) { state_->ask(request_of("seal", name)); }

std::size_t Store::evict(std::size_t bytes) {
  return state_->ask({{"op", "gc"}, {"bytes", bytes}}).at("evicted_bytes");
}

std::string Store::status() {
  Json answer = state_->ask({{"op", "status"}});
  answer.erase("ok");
  return answer.dump();
}

}  // namespace feedrate::tensors
