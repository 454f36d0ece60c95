// with_static [cuda|cpu|auto]: sums words with the GPU ring, both one message at a time and through the two ends of a
// lane.
#include <feedrate/ring.hpp>

#include <cstdio>
#include <cstring>
#include <thread>

using namespace std::chrono_literals;

std::unique_ptr<feedrate::Kernel> make_sum();  // work.cu

namespace {

void expect(bool right, const char* what) {
  if (!right) throw std::runtime_error(what);
}

std::uint32_t word_at(const std::byte* at) {
  std::uint32_t word = 0;
  std::memcpy(&word, at, sizeof word);
  return word;
}

constexpr std::uint32_t sum_to(std::uint32_t n) { return n * (n + 1) / 2; }

void single_messages(feedrate::Device& device, const feedrate::Kernel& sum) {
  feedrate::GpuRing ring(device, sum, {.message_bytes = 256, .result_bytes = 16, .notify = feedrate::Notify::flags});
  ring.start();
  for (std::uint32_t n = 4; n <= 64; n += 4) {
    std::vector<std::uint32_t> words(n);
    for (std::uint32_t i = 0; i < n; ++i) words[i] = i + 1;
    const auto id = ring.try_submit(std::as_bytes(std::span(words)));
    expect(id.has_value(), "a ring with one message is full");
    const feedrate::RingAnswer answer = ring.wait(*id, 5s);
    expect(answer.status == feedrate::RingStatus::ok && word_at(answer.payload.data()) == sum_to(n), "wrong sum");
  }
  const feedrate::RingAnswer odd = ring.wait(*ring.try_submit(std::vector<std::byte>(3)), 5s);
  expect(odd.status == feedrate::RingStatus::failed && odd.fault == feedrate::Fault::bad_length,
         "a message of 3 bytes did not fail with bad_length");
  try {
    ring.try_submit(std::vector<std::byte>(257));
    expect(false, "a message of 257 bytes was accepted");
  } catch (const feedrate::BadInput&) {  // thrown in the library, caught here
  }
  expect(ring.stop(feedrate::RingStop::drain).empty(), "a message was left unserved");
}

void lane_by_its_ends(feedrate::Device& device, const feedrate::Kernel& sum) {
  constexpr std::uint64_t kMessages = 10'000;
  feedrate::GpuRing ring(device, sum, {.message_bytes = 16, .result_bytes = 16, .capacity = 256});
  ring.start();
  feedrate::RingLane& lane = ring.lane(0);
  std::uint64_t sent = 0, received = 0;
  while (received < kMessages) {
    const feedrate::Messages room = lane.reserve(kMessages - sent);
    for (std::size_t i = 0; i < room.count; ++i, ++sent) {
      const auto word = static_cast<std::uint32_t>(sent);
      const std::uint32_t words[4] = {word, 1, 2, 3};
      room.header(i) = {sent, sizeof words, 0};
      std::memcpy(room.payload(i), words, sizeof words);
    }
    lane.publish(room.count);
    const feedrate::ConstMessages results = lane.poll(kMessages);
    for (std::size_t i = 0; i < results.count; ++i, ++received) {
      expect(results.header(i).id == received, "the results of a lane are out of order");
      expect(word_at(results.payload(i)) == static_cast<std::uint32_t>(received) + 6, "wrong sum");
    }
    lane.release(results.count);
    if (room.empty() && results.empty()) {
      ring.check();
      std::this_thread::yield();
    }
  }
}

}  // namespace

int main(int count, char** words) try {
  const auto device = feedrate::open_device(count > 1 ? words[1] : "auto");
  const auto sum = make_sum();
  single_messages(*device, *sum);
  lane_by_its_ends(*device, *sum);
  std::printf("correct sums on %s\n", device->info().name.c_str());
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
