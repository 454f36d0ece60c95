#include <fmt/format.h>
#include <sys/socket.h>

#include <array>
#include <csignal>
#include <cstring>
#include <nlohmann/json.hpp>

#include "common/clock.hpp"
#include "common/error.hpp"
#include "common/own_executable.hpp"
#include "common/threads/threads.hpp"
#include "experiments/handoff/reader.hpp"

namespace feedrate::handoff {
namespace {

constexpr std::uint64_t kPatienceNs = 60'000'000'000;

}  // namespace

ReaderProcess::ReaderProcess() {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()) != 0) {
    throw Failure(fmt::format("socketpair: {}", std::strerror(errno)));
  }
  socket_ = tensors::Descriptor(ends[0]);
  const tensors::Descriptor other(ends[1]);
  process_ = start_feedrate({"helper", "handoff"}, {.socket = other.get()});
}

ReaderProcess::~ReaderProcess() {
  socket_ = {};
  if (process_ > 0) await_end(process_);
}

void ReaderProcess::begin(const std::string& way, const Setting& setting) {
  send({Op::begin}, way + '\0' + nlohmann::json(setting).dump(), {});
  std::vector<Read> none;
  answer(none);
}

void ReaderProcess::ask(const Request& request, const std::vector<Ticket>& tickets) {
  std::string text;
  std::vector<int> descriptors;
  for (const Ticket& ticket : tickets) {
    const std::array<std::uint32_t, 2> head{static_cast<std::uint32_t>(ticket.bytes.size()), ticket.descriptor >= 0};
    text.append(reinterpret_cast<const char*>(head.data()), sizeof head).append(ticket.bytes);
    if (ticket.descriptor >= 0) descriptors.push_back(ticket.descriptor);
  }
  send(request, text, descriptors);
}

void ReaderProcess::send(const Request& request, std::string_view more, std::span<const int> descriptors) {
  std::string text(reinterpret_cast<const char*>(&request), sizeof request);
  text.append(more);
  const auto sent = tensors::send_packet(socket_.get(), text, descriptors, std::chrono::seconds(10));
  if (sent == tensors::Sent::gone) throw Failure("a reader ended");
  if (sent == tensors::Sent::later) throw Failure("a reader does not accept requests");
}

Answer ReaderProcess::answer(std::vector<Read>& read) {
  const std::uint64_t deadline = now_ns() + kPatienceNs;
  Backoff backoff;
  while (true) {
    const auto received = tensors::receive_packet(socket_.get(), packet_, 0);
    if (received == tensors::Received::packet) break;
    if (received != tensors::Received::nothing) throw Failure("a reader ended");
    if (now_ns() > deadline) {
      kill(process_, SIGKILL);
      throw Failure("a reader does not reply");
    }
    backoff.wait();
  }
  std::string_view text = packet_.text;
  Answer made;
  if (text.size() < sizeof made) throw Failure("a reader's reply is too short");
  std::memcpy(&made, text.data(), sizeof made);
  text.remove_prefix(sizeof made);
  if (made.failed != 0) throw Failure(fmt::format("a reader failed: {}", text));
  read.resize(text.size() / sizeof(Read));
  std::memcpy(read.data(), text.data(), read.size() * sizeof(Read));
  return made;
}

}  // namespace feedrate::handoff
