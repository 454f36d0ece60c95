// The GPU ring without the benchmark: a custom kernel serves messages from this program's threads.
#include <chrono>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <vector>

#include "feedrate/kernel.hpp"
#include "feedrate/ring.hpp"

using namespace feedrate;
using namespace std::chrono_literals;

/// A message is an array of floats; its result is the same array times `factor`.
struct Scale {
  float factor = 1;
  /// Other messages fail without affecting their neighbours.
  static FEEDRATE_HD bool accepts(std::size_t bytes) { return bytes % sizeof(float) == 0; }
  static FEEDRATE_HD std::size_t result_bytes(std::size_t bytes) { return bytes; }
  template <class Group>  // the threads that share the message: one thread, a warp or a block
  FEEDRATE_HD std::uint32_t operator()(const Group& group, const Vec16* in, std::size_t bytes, Vec16* out) const {
    const auto* from = reinterpret_cast<const float*>(in);
    auto* to = reinterpret_cast<float*>(out);
    for (std::size_t i = group.rank(); i < bytes / sizeof(float); i += group.size()) to[i] = factor * from[i];
    return 0;  // no checksum
  }
};

int main() try {
  const auto device = open_device("auto");  // the GPU, or CPU threads if there is none
  const KernelOf<Scale> work(Scale{2.5f});
  RingConfig config;
  config.message_bytes = config.result_bytes = 256;
  config.notify = Notify::flags;  // the lowest latency for a lone message
  config.idle = RingIdle::park;   // frees the GPU while no messages arrive
  GpuRing ring(*device, work, config);
  ring.start();
  for (std::size_t n = 1; n <= 64; ++n) {
    std::vector<float> numbers(n), expected(n);
    std::iota(numbers.begin(), numbers.end(), 1.0f);
    for (std::size_t i = 0; i < n; ++i) expected[i] = 2.5f * numbers[i];
    const auto id = ring.try_submit(std::as_bytes(std::span(numbers)));
    if (!id) throw Failure("a ring with one message is full");
    const RingAnswer answer = ring.wait(*id, 2s);
    if (answer.status != RingStatus::ok || std::memcmp(answer.payload.data(), expected.data(), 4 * n) != 0) {
      throw Failure("wrong answer");
    }
  }
  const RingAnswer odd = ring.wait(*ring.try_submit(std::vector<std::byte>(3)), 2s);
  std::printf("64 correct answers on %s; a message of 3 bytes %s\n", device->info().name.c_str(),
              odd.status == RingStatus::failed ? "failed alone" : "was accepted as floats");
  return ring.stop(RingStop::drain).empty() ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
