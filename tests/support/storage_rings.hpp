#pragma once
#include <gtest/gtest.h>

#include <numeric>

#include "common/error.hpp"
#include "tests/support/storage_files.hpp"
#include "tests/support/temp_dir.hpp"
#include "variants/storage/engine.hpp"

namespace feedrate::test {

/// Accesses by the threads of a device through the engine `gpu_rings`.
class RingChecks {
 public:
  static constexpr std::uint64_t kKey = 78;
  static constexpr std::size_t kBlock = 4096;
  static constexpr std::uint64_t kBlocks = 512;

  explicit RingChecks(Device& device) : device_(device) {}

  static Values cache(std::uint64_t pages, std::uint64_t ways) {
    return {{"cache-pages", pages}, {"cache-ways", ways}};
  }
  /// `own`: values of the engine's own axes. Two files, whose first `blocks` blocks are accessed repeatedly.
  storage::DeviceAccessResult run(Values own, unsigned repeats = 1, std::uint32_t blocks = 2 * kBlocks) {
    own.insert({{"ring-issue", std::string("gpu")}, {"gpu-threads", std::uint64_t{256}}});
    const std::vector<std::uint64_t> keys{kKey, kKey + 1};
    std::vector<std::uint32_t> order;
    for (unsigned n = 0; n < repeats; ++n) {
      for (std::uint32_t i = 0; i < 2 * kBlocks; ++i) order.push_back(i * 37 % blocks);
    }
    const storage::EngineEntry& entry = storage::Engines::instance().get("", "gpu_rings");
    return entry.access({{.files = files_, .device = device_, .block = kBlock, .depth = 32}, own},
                        {.order = order, .blocks_per_file = kBlocks, .keys = keys, .once = true, .seconds = 600});
  }
  /// The failure's message, or "accepted".
  std::string failure(Values own, std::uint32_t blocks = 2 * kBlocks) {
    try {
      run(std::move(own), 1, blocks);
    } catch (const Failure& found) {
      return found.what();
    }
    return "accepted";
  }

  void every_block_is_checked_once() {
    const storage::DeviceAccessResult result = run({});
    EXPECT_EQ(result.ended, 2 * kBlocks);
    EXPECT_EQ(result.loads, 2 * kBlocks);
    EXPECT_EQ(result.hits, 0u);
    EXPECT_GT(result.seconds, 0);
    const auto add = [](std::uint64_t sum, const auto& each) { return sum + each.second; };
    EXPECT_EQ(std::accumulate(result.latency.begin(), result.latency.end(), std::uint64_t{0}, add), 2 * kBlocks);
  }
  void cache_that_holds_everything_loads_each_block_once() {
    const storage::DeviceAccessResult result = run(cache(16384, 64), 8);
    EXPECT_EQ(result.ended, 16 * kBlocks);
    EXPECT_EQ(result.hits + result.loads, result.ended);
    EXPECT_GE(result.loads, 2 * kBlocks);
    EXPECT_LE(result.loads, 2 * kBlocks + kBlocks / 4) << "only threads that miss at the same time load a block twice";
  }
  void small_cache_replaces_blocks() {
    const storage::DeviceAccessResult result = run(cache(64, 4), 4);
    EXPECT_EQ(result.ended, 8 * kBlocks);
    EXPECT_GT(result.loads, 2 * kBlocks) << "blocks are loaded again";
  }
  void late_and_reordered_completions_are_waited_for() {
    for (const char* fault : {"delayed", "reordered"}) {
      const storage::DeviceAccessResult result = run({{"ring-fault", std::string(fault)}});
      EXPECT_EQ(result.ended, 2 * kBlocks) << fault;
      EXPECT_EQ(result.path.at("faults_injected"), std::to_string(2 * kBlocks / 64)) << fault;
    }
  }
  void faults_are_reported_with_file_and_offset() {
    for (const std::uint64_t pages : {0u, 256u}) {
      const Values own = cache(pages, 8);
      expect_failure(own, "failing", "Input/output error");
      expect_failure(own, "early", "words are wrong in device memory");
      Values soon = own;
      soon["ring-timeout"] = std::uint64_t{300};
      expect_failure(soon, "lost", "no completion arrived");
    }
    const std::string same = failure({{"ring-fault", std::string("early")}}, 1);
    EXPECT_NE(same.find("words are wrong in device memory"), std::string::npos)
        << "the memory held this block: " << same;
    const storage::DeviceAccessResult after = run({});
    EXPECT_EQ(after.ended, 2 * kBlocks) << "the next run is not affected";
  }

 private:
  void expect_failure(Values own, const char* fault, const char* why) {
    own["ring-fault"] = std::string(fault);
    const std::string text = failure(own);
    EXPECT_NE(text.find(why), std::string::npos) << fault << ": " << text;
    EXPECT_TRUE(text.ends_with(std::string(" (injected: ") + fault + ")")) << text;
    EXPECT_NE(text.find("read of 4096 bytes at offset "), std::string::npos) << text;
    EXPECT_NE(text.find(folder_.path().string()), std::string::npos) << text;
  }

  Device& device_;
  TempDir folder_;
  std::vector<storage::File> files_{content_file(folder_ / "a", kBlocks* kBlock, kKey),
                                    content_file(folder_ / "b", kBlocks* kBlock, kKey + 1)};
};

}  // namespace feedrate::test
