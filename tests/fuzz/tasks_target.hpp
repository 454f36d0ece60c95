#pragma once
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "variants/feeding/queues/redis/reader.hpp"

namespace feedrate::test {

/// Reads bytes as a worker reads an untrusted element. The first two bytes give the number and size of the slots.
/// Aborts if it finds an error that a sanitizer would not detect.
inline void read_foreign_tasks(const std::uint8_t* data, std::size_t size) {
  using namespace redis_queue;
  if (size < 2) return;
  const std::size_t count = 1 + data[0] % 8, stride = stride_of(std::size_t{16} * (data[1] % 8));
  const std::vector<char> heap(data + 2, data + size);  // exactly this size, so that reads beyond the end are detected
  const std::string_view bytes(heap.data(), heap.size());
  std::vector<std::byte> memory(count * stride);
  std::size_t offset = 0, bytes_reported = 0;
  while (offset < bytes.size()) {
    ClaimedTasks taken;
    const std::size_t before = offset;
    const Messages slots{memory.data(), stride, count};
    const std::size_t n = unpack_tasks(bytes, offset, slots, taken, 0);
    if (offset <= before || n > count || n + taken.rejected.size() == 0) std::abort();  // each call must make progress
    for (std::size_t i = 0; i < n; ++i) {
      if (sizeof(Header) + payload_bytes(slots.header(i)) > stride) std::abort();
      bytes_reported += payload_bytes(slots.header(i));
      const Extension extension{i < taken.deadlines.size() ? taken.deadlines[i] : 0};
      const std::string again =
          encode(slots.header(i), extension,
                 {reinterpret_cast<const char*>(slots.payload(i)), payload_bytes(slots.header(i))});
      const Parsed parsed = parse(again);
      if (parsed.bytes.size() != again.size() || parsed.header.id != slots.header(i).id) std::abort();
    }
    for (const Rejected& task : taken.rejected) bytes_reported += task.bytes.size();
  }
  if (bytes_reported > bytes.size()) std::abort();
  offset = 0;
  while (offset < bytes.size()) {
    const std::size_t before = offset;
    unpack_results(bytes, offset, {memory.data(), stride, count});
    if (offset <= before) std::abort();
  }
}

}  // namespace feedrate::test
