#include "libraries/tensors/store/choose_way.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "common/error.hpp"
#include "libraries/tensors/protocol.hpp"
#include "libraries/tensors/socket.hpp"

namespace feedrate::tensors {
namespace {

using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr unsigned kRounds = 5;
constexpr auto kPatience = 30s;  // a GPU's context alone can take a second

std::chrono::nanoseconds median(std::vector<std::chrono::nanoseconds> times) {
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

/// The other process: maps the chunks that it receives, and reports how long that took or why it failed.
void map_for_parent(int socket, const Candidate& candidate) {
  std::unique_ptr<ChunkMemory> memory;
  Packet packet;
  // Wait until the parent closes its end, however long the previous candidates take.
  while (await_packet(socket, packet, 1, std::chrono::hours(24)) == Received::packet) {
    const Json request = Json::parse(packet.text);
    Json answer;
    try {
      if (!memory) memory = candidate.make();
      Descriptor descriptor = packet.descriptors.empty() ? Descriptor() : std::move(packet.descriptors.front());
      const std::string handle = of_hex(request.at("handle").get<std::string>());
      const auto begin = Clock::now();
      const auto mapping = memory->map(std::move(descriptor), handle, request.at("bytes"));
      answer["ns"] = std::chrono::nanoseconds(Clock::now() - begin).count();
    } catch (const std::exception& error) {
      answer["fault"] = error.what();
    }
    if (send_packet(socket, answer.dump(), {}, kPatience) != Sent::yes) return;
  }
}

/// Owns that process; the destructor kills it.
class Mapper {
 public:
  explicit Mapper(const Candidate& candidate) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
      throw Failure(fmt::format("socketpair: {}", std::strerror(errno)));
    socket_ = Descriptor(ends[0]);
    Descriptor theirs(ends[1]);
    process_ = fork();
    if (process_ < 0) throw Failure(fmt::format("fork: {}", std::strerror(errno)));
    if (process_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    socket_ = Descriptor();
    try {
      map_for_parent(theirs.get(), candidate);
    } catch (...) {  // the parent notices when the socket closes
    }
    _exit(0);
  }
  Mapper(const Mapper&) = delete;
  Mapper& operator=(const Mapper&) = delete;
  ~Mapper() {
    socket_ = Descriptor();
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
  }

  std::chrono::nanoseconds map(const Chunk& chunk) {
    const Handle handle = chunk.handle();
    const std::string text = Json{{"handle", to_hex(handle.bytes)}, {"bytes", chunk.bytes()}}.dump();
    const std::span<const int> descriptors(&handle.descriptor, handle.descriptor < 0 ? 0 : 1);
    Packet packet;
    const bool sent = send_packet(socket_.get(), text, descriptors, kPatience) == Sent::yes;
    const Received received = sent ? await_packet(socket_.get(), packet, 0, kPatience) : Received::gone;
    if (received == Received::nothing) throw Failure("the mapping process did not answer");
    if (received != Received::packet) throw Failure("the mapping process ended");
    const Json answer = Json::parse(packet.text);
    if (answer.contains("fault")) throw Failure(answer.at("fault"));
    return std::chrono::nanoseconds(answer.at("ns").get<std::int64_t>());
  }

 private:
  Descriptor socket_;
  pid_t process_ = -1;
};

}  // namespace

std::vector<WayCost> measure_ways(const std::vector<Candidate>& candidates, std::size_t chunk_bytes) {
  // Fork all processes first: none of them may inherit state that this process sets up for a candidate.
  std::vector<std::unique_ptr<Mapper>> mappers;
  mappers.reserve(candidates.size());
  for (const Candidate& candidate : candidates) mappers.push_back(std::make_unique<Mapper>(candidate));
  std::vector<WayCost> found;
  for (std::size_t at = 0; at < candidates.size(); ++at) {
    const Candidate& candidate = candidates[at];
    WayCost cost{.name = candidate.name, .make = {}, .map = {}, .fault = {}};
    try {
      const auto memory = candidate.make();
      const std::size_t unit = memory->granularity(), bytes = (chunk_bytes + unit - 1) / unit * unit;
      std::vector<std::chrono::nanoseconds> making, mapping;
      std::vector<std::unique_ptr<Chunk>> kept;  // so that each chunk is new memory, not reused from a pool
      // The first round is not counted: it includes one-time costs, such as contexts and function tables.
      for (unsigned round = 0; round <= kRounds; ++round) {
        const auto begin = Clock::now();
        kept.push_back(memory->make(bytes));
        const auto made = Clock::now() - begin;
        const auto mapped = mappers[at]->map(*kept.back());
        if (round == 0) continue;
        making.emplace_back(made);
        mapping.push_back(mapped);
      }
      cost.make = median(std::move(making));
      cost.map = median(std::move(mapping));
    } catch (const std::exception& error) {
      cost.fault = error.what();
    }
    found.push_back(std::move(cost));
    mappers[at].reset();
  }
  return found;
}

const WayCost* cheapest(const std::vector<WayCost>& costs) {
  const WayCost* best = nullptr;
  for (const WayCost& cost : costs) {
    if (cost.fault.empty() && (best == nullptr || cost.make + cost.map < best->make + best->map)) best = &cost;
  }
  return best;
}

}  // namespace feedrate::tensors
