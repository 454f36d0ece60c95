#include "common/redis/own_keys.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <random>

#include "common/clock.hpp"
#include "common/error.hpp"

namespace feedrate::redis {
namespace {

constexpr std::uint64_t kKeepEveryNs = 10'000'000'000;

/// Identifies this process to users who find its keys; the same for all queues of the process.
const std::string& owner() {
  static const std::string name = [] {
    std::array<char, 256> host{};
    gethostname(host.data(), host.size() - 1);
    return fmt::format("{} process {}", host.data(), getpid());
  }();
  return name;
}

}  // namespace

std::string prefix_of_run(const std::string& prefix) {
  std::random_device random;
  return fmt::format("{}:{{bench-{:08x}{:08x}}}", prefix, random(), random());
}

OwnKeys::OwnKeys(const RedisSettings& settings, std::vector<std::string> keys, Keys whose)
    : connection_(settings.url), shared_(settings.shared), keys_(std::move(keys)) {
  if (whose == Keys::of_this_run) {
    owner_key_ = settings.own_prefix + ":owner";
    claim();
    remove(keys_);
  } else {
    for (const std::string& key : keys_) {
      if (connection_.command({"EXISTS", key})->integer == 0) continue;
      throw Failure(fmt::format(
          "the key {} exists and does not belong to this run, which would delete its data; remove the key, or use "
          "another --prefix for the worker and this run",
          key));
    }
  }
}

OwnKeys::~OwnKeys() {
  try {
    while (connection_.unanswered() != 0) connection_.read();
    std::vector<std::string> all = keys_;
    if (!owner_key_.empty()) all.push_back(owner_key_);
    remove(all);
  } catch (const Failure&) {  // server gone or hung: the cell's failure already reports it
  }
}

void OwnKeys::claim() {
  connection_.command({"SET", owner_key_, owner(), "NX", "PX", kLifetimeMs});
  const Reply found = connection_.command({"GET", owner_key_});
  if (text(*found) != owner()) {
    throw Failure(fmt::format("the key {} exists and belongs to another run ({})", owner_key_, text(*found)));
  }
}

void OwnKeys::keep() {
  if (!shared_ || now_ns() - kept_ns_ < kKeepEveryNs) return;
  kept_ns_ = now_ns();
  for (const std::string& key : keys_) expire(connection_, key, true);
  if (!owner_key_.empty()) expire(connection_, owner_key_, true);
  connection_.flush();
}

void OwnKeys::remove(const std::vector<std::string>& keys) {
  if (keys.empty()) return;
  std::vector<std::string_view> command{"DEL"};
  command.insert(command.end(), keys.begin(), keys.end());
  connection_.command(command);
}

}  // namespace feedrate::redis
