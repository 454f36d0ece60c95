#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "common/device/device.hpp"

namespace feedrate {

/// Pinned memory for what a GPU and the host poll, placed where a round trip is shortest.
///
/// An H200 reads some pages of host memory faster than others, by the physical address: pages of 4 KiB alternate, and
/// all SMs agree on which are near. A round trip is shortest if the GPU polls a near page and answers in a far one, so
/// that its answers do not queue behind its reads. Otherwise the placement that a process happens to get decides, and
/// results differ from process to process. The limits `word_round_trip_ns` and `misplaced_word_round_trip_ns` show the
/// difference in every run.
class PolledMemory {
 public:
  static constexpr std::size_t kPage = 4096;

  /// `pieces`: how many pieces of at most a page will be taken. Measures twice as many pages and a few more, with
  /// `Device::page_read_cycles`, so it must not be made while a Resident runs.
  PolledMemory(Device&, std::size_t pieces);
  /// Zeroed memory for what the device reads and the host writes, or the other way round. A piece of at most a page has
  /// a page of its own, which is placed; larger pieces have pages of both kinds.
  std::byte* read_by_device(std::size_t bytes) { return take(bytes, true); }
  std::byte* written_by_device(std::size_t bytes) { return take(bytes, false); }

 private:
  std::byte* take(std::size_t bytes, bool near);

  Device& device_;
  Buffer memory_;
  std::deque<std::byte*> left_;  // the pages not taken, the nearest first
  std::vector<Buffer> others_;
};

}  // namespace feedrate
