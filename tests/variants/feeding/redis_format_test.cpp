// The format of messages in Redis, and how a worker handles bytes that are not messages.
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "tests/fuzz/tasks_target.hpp"
#include "variants/feeding/queues/redis/broker.hpp"

namespace feedrate::test {
namespace {

using namespace redis_queue;

std::vector<std::uint8_t> bytes_of(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

TEST(ForeignTasks, AreNeverReadBeyondTheirEnd) {
  const auto level = spdlog::get_level();
  spdlog::set_level(spdlog::level::off);
  std::mt19937 random(5);
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(FEEDRATE_SOURCE_DIR "/tests/fuzz/corpus/tasks")) {
    const auto bytes = bytes_of(entry.path());
    read_foreign_tasks(bytes.data(), bytes.size());
    ++files;
    for (int i = 0; i < 200; ++i) {  // change some bytes, or cut off the end
      auto changed = bytes;
      for (unsigned n = random() % 4; n != 0; --n)
        changed[random() % changed.size()] = static_cast<std::uint8_t>(random());
      changed.resize(1 + random() % changed.size());
      read_foreign_tasks(changed.data(), changed.size());
    }
  }
  EXPECT_GE(files, 9u);
  spdlog::set_level(level);
}

TEST(ForeignTasks, AreUnpackedOrRejectedOneByOne) {
  const auto task = [](std::uint64_t id, std::size_t bytes, TaskInfo info = {}, Extension extension = {}) {
    Header header{id, static_cast<std::uint32_t>(bytes), 0};
    set_info(header, info);
    std::string text(reinterpret_cast<const char*>(&header), sizeof header);
    if (info.version == 1) text.append(reinterpret_cast<const char*>(&extension), sizeof extension);
    text.append(bytes, 'x');
    text.resize((text.size() + 15) / 16 * 16);
    return text;
  };
  const std::string element = task(1, 20) + task(2, 100) + task(3, 5, {.version = 1}, {.deadline_ms = 1}) +
                              task(4, 64, {.version = 1, .attempts = 2}, {.deadline_ms = ~0ULL}) +
                              task(5, 0, {.version = 2}) + task(6, 3) + "tail";
  std::vector<std::byte> memory(8 * stride_of(64));
  const Messages slots{memory.data(), stride_of(64), 8};
  ClaimedTasks taken;
  std::size_t offset = 0;
  ASSERT_EQ(unpack_tasks(element, offset, slots, taken, 0), 3u);
  EXPECT_EQ(offset, element.size());
  EXPECT_EQ(slots.header(0).id, 1u);
  EXPECT_EQ(slots.header(1).id, 4u);
  EXPECT_EQ(slots.header(2).id, 6u);
  EXPECT_EQ(info_of(slots.header(1)).attempts, 2);
  EXPECT_TRUE(taken.retried);
  ASSERT_EQ(taken.deadlines.size(), 2u);
  EXPECT_EQ(taken.deadlines[1], ~0ULL);
  ASSERT_EQ(taken.rejected.size(), 4u);
  const std::vector<Fault> faults{Fault::too_long, Fault::expired, Fault::bad_version, Fault::none};
  const std::vector<std::size_t> positions{1, 1, 2, 3};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(taken.rejected[i].fault, faults[i]) << i;
    EXPECT_EQ(taken.rejected[i].position, positions[i]) << i;
  }
  EXPECT_EQ(taken.rejected[0].bytes.size(), 116u) << "the complete task is kept";
  EXPECT_EQ(taken.rejected[3].bytes, "tail");
}

TEST(Verdicts, OnlyTemporaryFaultsAreRetried) {
  const auto result = [](Fault fault) { return Header{1, kFailed | static_cast<std::uint32_t>(fault), 0}; };
  EXPECT_EQ(verdict_of({1, 64, 0}, 1, 3), Verdict::done);
  EXPECT_EQ(verdict_of(result(Fault::refused), 1, 3), Verdict::failed);
  EXPECT_EQ(verdict_of(result(Fault::again), 1, 3), Verdict::retry);
  EXPECT_EQ(verdict_of(result(Fault::again), 3, 3), Verdict::failed);
}

}  // namespace
}  // namespace feedrate::test
