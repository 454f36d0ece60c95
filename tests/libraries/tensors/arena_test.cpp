// Pieces of shared chunks do not overlap, are zeroed, and are never lost.
#include "libraries/tensors/store/arena.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <set>

#include "libraries/tensors/errors.hpp"
#include "libraries/tensors/tensor.hpp"
#include "tests/libraries/tensors/sizes.hpp"

namespace feedrate::tensors {
namespace {

class ArenaTest : public testing::Test {
 protected:
  std::byte* bytes_of(const Place& place) {
    auto& mapping = mappings_[place.chunk];
    if (!mapping) {
      const Chunk& chunk = arena_.chunk(place.chunk);
      mapping = memory_->map(Descriptor(fcntl(chunk.handle().descriptor, F_DUPFD_CLOEXEC, 0)), "", chunk.bytes());
    }
    return static_cast<std::byte*>(mapping->data()) + place.offset;
  }
  static bool all_are(const std::byte* bytes, std::size_t count, std::byte value) {
    return std::all_of(bytes, bytes + count, [value](std::byte byte) { return byte == value; });
  }

  std::unique_ptr<ChunkMemory> memory_ = memfd_memory();
  std::set<std::uint64_t> mapped_;
  Arena arena_{*memory_, 64 * kMi, [this](std::uint64_t chunk) { return mapped_.contains(chunk); }, {8 * kMi, kMi}};
  std::map<std::uint64_t, std::unique_ptr<Mapping>> mappings_;
};

TEST_F(ArenaTest, PiecesAreZeroedAlignedAndDisjoint) {
  std::mt19937 random(1);
  std::vector<std::pair<Place, std::byte>> held;
  for (unsigned step = 1; step < 4000; ++step) {
    if (held.size() < 60 && random() % 3 != 0) {
      const std::size_t bytes = random() % 50 == 0 ? 3 * kMi : 1 + random() % (64 << 10);
      Place place;
      try {
        place = arena_.take(bytes);
      } catch (const OutOfMemory&) {
        continue;
      }
      EXPECT_EQ(place.offset % kDataAlignment, 0u);
      EXPECT_GE(place.bytes, bytes);
      std::byte* const data = bytes_of(place);
      ASSERT_TRUE(all_are(data, place.bytes, std::byte{0})) << "step " << step;
      const auto mark = static_cast<std::byte>(1 + step % 255);
      std::memset(data, static_cast<int>(mark), place.bytes);
      held.emplace_back(place, mark);
    } else if (!held.empty()) {
      std::swap(held[random() % held.size()], held.back());
      const auto [place, mark] = held.back();
      held.pop_back();
      ASSERT_TRUE(all_are(bytes_of(place), place.bytes, mark)) << "overwritten by another piece, step " << step;
      if (!arena_.is_shared(place.chunk)) mappings_.erase(place.chunk);
      arena_.give_back(place);
      std::erase_if(mappings_, [&](const auto& one) { return !arena_.has(one.first); });
    }
  }
  for (const auto& [place, mark] : held) arena_.give_back(place);
  EXPECT_EQ(arena_.taken(), 0u);
  EXPECT_EQ(arena_.chunks(), 1u) << "one empty chunk must be kept";
  // All gaps have merged: as many of the largest small pieces as fit into the chunk can be taken.
  std::set<std::uint64_t> chunks;
  for (int i = 0; i < 8; ++i) chunks.insert(arena_.take(kMi).chunk);
  EXPECT_EQ(chunks.size(), 1u);
}

TEST_F(ArenaTest, LargePiecesGetTheirOwnChunks) {
  const Place place = arena_.take(5 * kMi + 1);
  EXPECT_FALSE(arena_.is_shared(place.chunk));
  EXPECT_EQ(arena_.reserved(), 6 * kMi) << "in units of 2 MiB";
  arena_.give_back(place);
  EXPECT_EQ(arena_.reserved(), 0u);
  EXPECT_FALSE(arena_.has(place.chunk));
}

TEST_F(ArenaTest, LimitIsEnforcedAndEmptyChunksMakeRoom) {
  const Place small = arena_.take(100);
  arena_.give_back(small);
  EXPECT_EQ(arena_.reserved(), 8 * kMi) << "the empty chunk must be kept";
  const Place large = arena_.take(60 * kMi);  // fits only after the empty chunk is freed
  EXPECT_EQ(arena_.reserved(), 60 * kMi);
  EXPECT_THROW(arena_.take(5 * kMi), OutOfMemory);
  EXPECT_NO_THROW(arena_.take(100)) << "a smaller chunk fits";
  EXPECT_EQ(arena_.reserved(), 64 * kMi);
  EXPECT_THROW(arena_.take(65 * kMi), OutOfMemory);
  arena_.give_back(large);
  EXPECT_NO_THROW(arena_.take(5 * kMi));
}

TEST_F(ArenaTest, EmptyChunksStillMappedElsewhereAreReused) {
  std::vector<Place> places;
  for (int i = 0; i < 24; ++i) places.push_back(arena_.take(kMi));
  EXPECT_EQ(arena_.chunks(), 3u);
  mapped_ = {1, 2, 3};
  for (const Place& place : places) arena_.give_back(place);
  EXPECT_EQ(arena_.chunks(), 3u) << "freeing the chunks would not free their memory";
  for (int i = 0; i < 24; ++i) arena_.take(kMi);
  EXPECT_EQ(arena_.chunks(), 3u);
}

TEST_F(ArenaTest, ZeroBytesTakeNoPlace) {
  EXPECT_EQ(arena_.take(0).chunk, 0u);
  arena_.give_back({});
  EXPECT_EQ(arena_.chunks(), 0u);
}

TEST_F(ArenaTest, PiecesOf4KiHaveLessThanTenPercentOverhead) {
  Arena arena(*memory_, std::size_t{1} << 30, [](std::uint64_t) { return false; });
  for (int i = 0; i < 100'000; ++i) arena.take(4096);
  EXPECT_LE(static_cast<double>(arena.reserved()), 1.1 * 100'000 * 4096);
}

TEST(Memfd, MemfdCannotBeTruncated) {
  const auto memory = memfd_memory();
  const auto chunk = memory->make(2 * kMi);
  EXPECT_NE(ftruncate(chunk->handle().descriptor, 4096), 0);
  EXPECT_THROW(memory->map(Descriptor(fcntl(chunk->handle().descriptor, F_DUPFD_CLOEXEC, 0)), "", 4 * kMi), Failure);
}

}  // namespace
}  // namespace feedrate::tensors
