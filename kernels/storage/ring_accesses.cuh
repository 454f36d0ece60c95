#pragma once
#include <cstring>

#include "kernels/storage/content.hpp"
#include "kernels/storage/rings_kernel.hpp"

/// The work of device threads that access storage through rings.
namespace feedrate::storage::rings {

/// A device thread's place.
template <class Lanes>
struct Place {
  std::uint32_t thread;  ///< among all device threads

  /// All lanes of a group use the same queue.
  FEEDRATE_HD const Queue& queue(const View& view) const { return view.queues[thread / Lanes::kCount % view.count]; }
  FEEDRATE_HD std::uint16_t id(const View& view) const {
    return static_cast<std::uint16_t>(thread / Lanes::kCount / view.count * Lanes::kCount + thread % Lanes::kCount);
  }
  FEEDRATE_HD std::byte* staging(const View& view) const { return view.staging + std::size_t{thread} * view.block; }
};

struct alignas(16) Piece {
  std::uint64_t word[2];
};

/// Copies with all lanes. Both addresses are aligned to 16 bytes, and memory up to the next multiple of 16 bytes may be
/// accessed.
template <class Lanes>
FEEDRATE_HD void copy_block(const Lanes& lanes, std::byte* to, const std::byte* from, std::uint32_t bytes) {
  auto* const target = reinterpret_cast<Piece*>(to);
  const auto* const source = reinterpret_cast<const Piece*>(from);
  for (std::uint32_t i = lanes.rank(); i < bytes / sizeof(Piece); i += Lanes::kCount) target[i] = source[i];
  for (std::uint32_t i = bytes / sizeof(Piece) * sizeof(Piece) + lanes.rank(); i < bytes; i += Lanes::kCount) {
    to[i] = from[i];
  }
}

/// Reads blocks into the memory `to` of those lanes whose `wants` is set.
template <class Lanes>
FEEDRATE_HD Outcome read_blocks(const Lanes& lanes, const View& view, const Place<Lanes>& place, bool wants,
                                std::uint32_t file, std::uint64_t offset, std::uint32_t bytes, std::byte* to) {
  std::byte* const staging = place.staging(view);
  const Queue& queue = place.queue(view);
  submit(lanes, queue, wants,
         nvme::io_command(nvme::IoOpcode::read, place.id(view), file + 1, offset, bytes,
                          reinterpret_cast<std::uint64_t>(staging), 0));
  const Outcome outcome = await(lanes, queue, wants, place.id(view), view.limit_ns);
  const auto arrived = wants && outcome.status().ok() ? outcome.bytes() : 0;
  for_each_lane(lanes.ballot(arrived != 0), [&](unsigned lane) {
    copy_block(lanes, reinterpret_cast<std::byte*>(lanes.from(lane, reinterpret_cast<std::uint64_t>(to))),
               reinterpret_cast<const std::byte*>(lanes.from(lane, reinterpret_cast<std::uint64_t>(staging))),
               lanes.from(lane, arrived < bytes ? arrived : bytes));
  });
  lanes.sync();
  if (arrived != 0) clear_content(staging, sizeof(std::uint64_t));  // a later completion without data is found
  return outcome;
}

/// Writes blocks from the memory `from` of those lanes whose `wants` is set.
template <class Lanes>
FEEDRATE_HD Outcome write_blocks(const Lanes& lanes, const View& view, const Place<Lanes>& place, bool wants,
                                 std::uint32_t file, std::uint64_t offset, std::uint32_t bytes, std::byte* from) {
  std::byte* const staging = place.staging(view);
  const Queue& queue = place.queue(view);
  for_each_lane(lanes.ballot(wants), [&](unsigned lane) {
    copy_block(lanes, reinterpret_cast<std::byte*>(lanes.from(lane, reinterpret_cast<std::uint64_t>(staging))),
               reinterpret_cast<const std::byte*>(lanes.from(lane, reinterpret_cast<std::uint64_t>(from))),
               lanes.from(lane, bytes));
  });
  lanes.sync();
  submit(lanes, queue, wants,
         nvme::io_command(nvme::IoOpcode::write, place.id(view), file + 1, offset, bytes,
                          reinterpret_cast<std::uint64_t>(staging), 0));
  return await(lanes, queue, wants, place.id(view), view.limit_ns);
}

/// Moves a device thread's share of a list. After a timeout, the thread moves no more blocks.
template <class Lanes>
FEEDRATE_HD void move_list(const Lanes& lanes, const View& view, std::uint32_t thread, ListedBlock* blocks,
                           std::uint32_t count, bool reads) {
  const Place<Lanes> place{thread};
  bool usable = true;
  for (std::uint32_t i = thread; lanes.ballot(i < count) != 0; i += view.threads) {
    const bool wants = i < count && usable;
    const ListedBlock block = wants ? blocks[i] : ListedBlock{};
    const Outcome outcome =
        reads ? read_blocks(lanes, view, place, wants, block.file, block.offset, block.bytes, block.device)
              : write_blocks(lanes, view, place, wants, block.file, block.offset, block.bytes, block.device);
    if (i < count) blocks[i].outcome = usable ? outcome : Outcome::of({kTimedOut}, 0);
    if (wants && outcome.status().bits == kTimedOut) usable = false;
  }
}

/// Records the first failure, which ends all threads.
inline FEEDRATE_HD void fail(Tally& tally, std::uint64_t block, Outcome outcome, std::uint64_t wrong,
                             std::uint64_t first) {
  if (DeviceWords::exchange(tally.failed, 1) != 0) return;
  tally.failed_block = block;
  tally.failed_outcome = outcome.word;
  tally.wrong_words = wrong;
  tally.wrong_first = first;
}

/// One thread's part in the accesses.
template <class Lanes>
class Accessor {
 public:
  FEEDRATE_HD Accessor(const Lanes& lanes, const View& view, const Accesses& accesses, std::uint32_t thread)
      : lanes_(lanes), view_(view), accesses_(accesses), tally_(*accesses.tally), place_{thread} {}

  FEEDRATE_HD void run() {
    const std::uint64_t begin = device_clock_ns();
    if (lanes_.rank() == 0) DeviceWords::lower(tally_.began_ns, begin);
    for (unsigned round = 0;; ++round) {
      std::uint64_t first = ~std::uint64_t{0};
      if (lanes_.rank() == 0 && !over(begin, round)) first = DeviceWords::add(tally_.next, Lanes::kCount);
      first = lanes_.from(0, first);
      if (first >= accesses_.most) break;
      const std::uint64_t number = first + lanes_.rank();
      access(number < accesses_.most, number);
    }
    if (lanes_.rank() == 0) DeviceWords::raise(tally_.ended_ns, device_clock_ns());
    const std::uint64_t mine[] = {ended_, hits_, loads_};
    DeviceWords::add(tally_.ended, mine[0]);
    DeviceWords::add(tally_.hits, mine[1]);
    DeviceWords::add(tally_.loads, mine[2]);
  }

 private:
  FEEDRATE_HD bool over(std::uint64_t begin, unsigned round) const {
    constexpr unsigned kRoundsPerStopRead = 16;
    if (DeviceWords::load(tally_.failed) != 0 || device_clock_ns() - begin > accesses_.ns) return true;
    return round % kRoundsPerStopRead == 0 && SystemMemory::load_acquire(*accesses_.stop) != 0;
  }

  /// One access per lane, which ends with the checked page or with a failure.
  FEEDRATE_HD void access(bool active, std::uint64_t number) {
    const std::uint64_t block = active ? accesses_.order[number % accesses_.blocks] : 0;
    const std::uint64_t began = device_clock_ns();
    const PageCache& cache = accesses_.cache;
    bool pending = active;
    while (lanes_.ballot(pending) != 0) {
      std::uint32_t entry = place_.thread;  // without a cache, each thread has its own page
      Lookup found = pending ? Lookup::load : Lookup::full;
      if (pending && cache.sets != 0) found = cache.acquire(block, entry);
      const bool loads = pending && found == Lookup::load;
      bool good = load(loads, block, entry);
      if (pending && found == Lookup::loading) good = wait_for(entry);
      const bool usable = pending && found != Lookup::full && good;
      check(usable, block, entry);
      if (usable) {
        ++ended_;
        if (loads) {
          ++loads_;
          DeviceWords::add(tally_.latency[tally_bucket(device_clock_ns() - began)], 1);
        } else {
          ++hits_;
        }
      }
      lanes_.sync();
      if (pending && found != Lookup::full && cache.sets != 0) cache.release(entry);
      pending = pending && found == Lookup::full;
      if (lanes_.from(0, DeviceWords::load(tally_.failed)) != 0) return;
    }
  }

  FEEDRATE_HD bool load(bool loads, std::uint64_t block, std::uint32_t entry) {
    const PageCache& cache = accesses_.cache;
    const std::uint32_t bytes = cache.page_bytes;
    const Outcome outcome =
        read_blocks(lanes_, view_, place_, loads, file_of(block), offset_of(block), bytes, cache.page(entry));
    if (!loads) return true;
    const bool good = outcome.status().ok() && outcome.bytes() == bytes;
    if (!good) fail(tally_, block, outcome, 0, 0);
    if (cache.sets != 0) cache.loaded(entry, good);
    return good;
  }

  /// Waits for a page that another thread loads. That thread's wait is limited, and so is this one.
  FEEDRATE_HD bool wait_for(std::uint32_t entry) const {
    typename Lanes::Wait wait;
    while (true) {
      const CacheEntry::State state = accesses_.cache.state_of(entry);
      if (state != CacheEntry::State::loading) return state == CacheEntry::State::ready;
      wait();
    }
  }

  /// Compares the pages of those lanes whose `usable` is set with the contents of their files.
  FEEDRATE_HD void check(bool usable, std::uint64_t block, std::uint32_t entry) {
    for_each_lane(lanes_.ballot(usable), [&](unsigned lane) {
      const std::uint64_t its = lanes_.from(lane, block);
      const std::byte* const page = accesses_.cache.page(lanes_.from(lane, entry));
      std::uint64_t first = ~std::uint64_t{0};
      const std::uint64_t wrong = count_wrong(page, accesses_.cache.page_bytes, accesses_.keys[file_of(its)],
                                              offset_of(its), first, lanes_.rank(), Lanes::kCount);
      if (wrong != 0) fail(tally_, its, {}, wrong, first);
    });
  }

  FEEDRATE_HD std::uint32_t file_of(std::uint64_t block) const {
    return static_cast<std::uint32_t>(block / accesses_.blocks_per_file);
  }
  FEEDRATE_HD std::uint64_t offset_of(std::uint64_t block) const {
    return block % accesses_.blocks_per_file * accesses_.cache.page_bytes + accesses_.shift;
  }

  Lanes lanes_;
  const View& view_;
  const Accesses& accesses_;
  Tally& tally_;
  Place<Lanes> place_;
  std::uint64_t ended_ = 0, hits_ = 0, loads_ = 0;
};

}  // namespace feedrate::storage::rings
