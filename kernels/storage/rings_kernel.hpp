#pragma once
#include <cstddef>
#include <cstdint>

#include "common/device/launchable.hpp"
#include "kernels/storage/page_cache.hpp"
#include "kernels/storage/rings.hpp"

namespace feedrate::storage::rings {

/// A block to move, and how that ended.
struct ListedBlock {
  std::byte* device = nullptr;
  std::uint64_t offset = 0;
  std::uint32_t file = 0, bytes = 0;
  Outcome outcome = {};
};

/// What device threads need to access storage. Group number g of L lanes uses queue g % count; its lane number l uses
/// identifier g / count × L + l, and thread number t uses bytes [t × block, t × block + block) of the staging memory.
struct View {
  Queue* queues = nullptr;       ///< device memory
  std::uint32_t count = 0;       ///< number of queues
  std::uint32_t threads = 0;     ///< number of device threads
  std::byte* staging = nullptr;  ///< pinned memory
  std::uint32_t block = 0;       ///< largest bytes of a command, a multiple of 16
  std::uint64_t limit_ns = 0;    ///< longest time that a thread waits for a completion
};

/// Moves the blocks of a list (pinned memory), one after another per device thread.
class ListLaunch final : public Launchable {
 public:
  ListLaunch(const View& view, ListedBlock* blocks, std::uint32_t count, bool reads)
      : view_(view), blocks_(blocks), count_(count), reads_(reads) {}
  void with_cuda_launch(const UseCudaLaunch&) const override;
  std::function<void()> on_cpu() const override;

 private:
  View view_;
  ListedBlock* blocks_;
  std::uint32_t count_;
  bool reads_;
};

/// Number of buckets of ns in a tally, as in the class Histogram of the harness: 128 per doubling.
inline constexpr std::size_t kTallyBuckets = 4352;
constexpr std::size_t tally_bucket(std::uint64_t ns) {
  unsigned shift = 0;
  while (ns >> shift >= 256) ++shift;
  const std::size_t index = shift == 0 ? ns : 256 + (shift - 1) * 128 + ((ns >> shift) - 128);
  return index < kTallyBuckets ? index : kTallyBuckets - 1;
}
/// The middle of a bucket.
constexpr std::uint64_t tally_ns(std::size_t bucket) {
  if (bucket < 256) return bucket;
  const std::size_t shift = (bucket - 256) / 128 + 1;
  return ((128 + (bucket - 256) % 128) << shift) + (std::uint64_t{1} << (shift - 1));
}

/// What the threads of one launch have done. Device memory; all words are 0 before the launch, except `began_ns`.
struct Tally {
  std::uint64_t next;                ///< number of accesses that threads have taken
  std::uint64_t ended;               ///< number of accesses that ended, checked
  std::uint64_t hits;                ///< accesses that found the page in the cache
  std::uint64_t loads;               ///< pages read from storage
  std::uint64_t began_ns, ended_ns;  ///< by the device's clock; `began_ns` is initially the largest value
  std::uint64_t failed;              ///< 1 after the first failure; the following fields describe it
  std::uint64_t failed_block, failed_outcome, wrong_words, wrong_first;
  std::uint64_t latency[kTallyBuckets];  ///< ns from the lookup of a page that was read until it was checked
};

/// Accesses that device threads make and check by themselves.
struct Accesses {
  const std::uint32_t* order = nullptr;  ///< device memory: block numbers, across the files laid end to end
  std::uint64_t blocks = 0;              ///< entries of `order`, which repeats
  std::uint64_t most = 0;                ///< number of accesses; the time may end earlier
  std::uint64_t blocks_per_file = 0, shift = 0;
  const std::uint64_t* keys = nullptr;  ///< device memory: the key of each file's contents
  std::uint64_t ns = 0;                 ///< duration
  PageCache cache = {};                 ///< without entries: each thread has a page of its own there
  std::uint64_t* stop = nullptr;        ///< pinned memory: the host sets it to 1 to end all threads early
  Tally* tally = nullptr;
};

class AccessLaunch final : public Launchable {
 public:
  AccessLaunch(const View& view, const Accesses& accesses) : view_(view), accesses_(accesses) {}
  void with_cuda_launch(const UseCudaLaunch&) const override;
  std::function<void()> on_cpu() const override;

 private:
  View view_;
  Accesses accesses_;
};

}  // namespace feedrate::storage::rings
