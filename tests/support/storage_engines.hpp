#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <map>
#include <numeric>
#include <random>

#include "common/clock.hpp"
#include "common/error.hpp"
#include "common/threads/threads.hpp"
#include "tests/support/storage_files.hpp"
#include "tests/support/temp_dir.hpp"
#include "variants/storage/engine.hpp"

namespace feedrate::test {

/// The names of the engines that move blocks of files. Engines on devices have tests of their own.
inline std::vector<std::string> file_engines() {
  std::vector<std::string> names = storage::Engines::instance().list();
  std::erase_if(names, [](const auto& name) { return storage::Engines::instance().get("", name).own_storage; });
  return names;
}

/// The checks that every engine on files must pass, on a device.
class EngineChecks {
 public:
  static constexpr std::uint64_t kKey = 77;
  static constexpr std::size_t kBlock = 64 << 10, kBlocks = 40, kDepth = 6;

  /// `more`: further values of the engine's own axes.
  EngineChecks(const std::string& engine, Device& device, Values more = {})
      : entry_(storage::Engines::instance().get("", engine)), device_(device), more_(std::move(more)) {}

  std::string why_unsupported(storage::Operation operation, bool direct) const {
    if (auto reason = entry_.unavailable(); !reason.empty()) return reason;
    return entry_.why_unsupported ? entry_.why_unsupported(point(operation, direct)) : "";
  }

  /// Reads two files in random order, with odd offsets and lengths among the requests.
  void reads_every_block(bool direct) {
    const std::vector<storage::File> files{content_file(folder_ / "a", kBlocks * kBlock, kKey),
                                           content_file(folder_ / "b", kBlocks * kBlock, kKey + 1)};
    const auto engine = open(files, storage::Operation::read, direct);
    std::vector<storage::Request> requests;
    const Buffer memory = device_.allocate_device(2 * kBlocks * kBlock);
    for (std::size_t i = 0; i < 2 * kBlocks; ++i) {
      const std::size_t shift = i % 5 == 3 ? 8 * i + 3 : 0;
      requests.push_back({i, static_cast<unsigned>(i % 2), i / 2 * kBlock + shift, kBlock - shift - i % 3,
                          memory.data() + i * kBlock});
    }
    std::shuffle(requests.begin(), requests.end(), std::mt19937_64(5));
    for (const storage::Completion& end : run(*engine, requests)) {
      const auto request = std::ranges::find(requests, end.id, &storage::Request::id);
      ASSERT_EQ(end.error, 0) << end.id;
      ASSERT_EQ(end.bytes, request->bytes) << end.id;
      EXPECT_EQ(wrong_words(device_, request->device, request->bytes, kKey + request->file, request->offset), 0u)
          << end.id;
      EXPECT_NE(wrong_words(device_, request->device, request->bytes, kKey + request->file, request->offset + 8), 0u)
          << "the check must find a shifted block";
    }
  }

  /// A file that ends within a block, and requests at and past its end.
  void reports_the_end_of_a_file() {
    const std::vector<storage::File> files{content_file(folder_ / "a", kBlock + 100, kKey)};
    const auto engine = open(files, storage::Operation::read, false);
    const Buffer memory = device_.allocate_device(3 * kBlock);
    std::vector<storage::Request> requests;
    for (std::size_t i = 0; i < 3; ++i) requests.push_back({i, 0, i * kBlock, kBlock, memory.data() + i * kBlock});
    const std::size_t bytes[] = {kBlock, 100, 0};
    for (const storage::Completion& end : run(*engine, requests)) {
      EXPECT_EQ(end.error, 0);
      EXPECT_EQ(end.bytes, bytes[end.id]);
    }
    EXPECT_EQ(wrong_words(device_, memory.data() + kBlock, 100, kKey, kBlock), 0u);
  }

  /// Requests that the file rejects, and then one that it serves.
  void reports_an_error_and_continues() {
    // The kernel answers EIO to a read of unmapped memory.
    const std::vector<storage::File> files{{"/proc/self/mem", kBlock}, content_file(folder_ / "a", kBlock, kKey)};
    const auto engine = open(files, storage::Operation::read, false);
    const Buffer memory = device_.allocate_device(3 * kBlock);
    std::vector<storage::Request> requests;
    for (std::size_t i = 0; i < 3; ++i) {
      requests.push_back({i, i == 2 ? 1u : 0u, 0, kBlock, memory.data() + i * kBlock});
    }
    const std::vector<storage::Completion> ended = run(*engine, requests);
    ASSERT_EQ(ended.size(), 3u);
    EXPECT_EQ(ended[0].error, EIO);
    EXPECT_EQ(ended[1].error, EIO);
    EXPECT_EQ(ended[2].error, 0);
    EXPECT_EQ(wrong_words(device_, requests[2].device, kBlock, kKey, 0), 0u);
  }

  void reports_a_missing_file() {
    const std::vector<storage::File> files{{folder_ / "missing", kBlock}};
    try {
      open(files, storage::Operation::read, false);
      FAIL() << "opened a file that does not exist";
    } catch (const Failure& failure) {
      EXPECT_NE(std::string(failure.what()).find(files[0].path), std::string::npos) << failure.what();
      EXPECT_NE(std::string(failure.what()).find("No such file"), std::string::npos) << failure.what();
    }
  }

  void writes_every_block(bool direct) {
    const std::vector<storage::File> files{content_file(folder_ / "a", kBlocks * kBlock, kKey)};
    const Buffer memory = device_.allocate_device(kBlocks * kBlock),
                 host = device_.allocate_host(kBlock, HostMemory::pinned);
    const auto stream = device_.stream();
    std::vector<storage::Request> requests;
    for (std::size_t i = 0; i < kBlocks; ++i) {
      storage::fill_content(host.data(), kBlock, kKey + 9, i * kBlock);
      stream->copy_to_device(memory.data() + i * kBlock, host.data(), kBlock);
      stream->synchronize();
      requests.push_back({i, 0, i * kBlock, kBlock, memory.data() + i * kBlock});
    }
    {
      const auto engine = open(files, storage::Operation::write, direct);
      for (const storage::Completion& end : run(*engine, requests)) {
        EXPECT_EQ(end.error, 0);
        EXPECT_EQ(end.bytes, kBlock);
      }
    }
    std::vector<std::uint64_t> words(kBlocks * kBlock / 8);
    std::ifstream(files[0].path, std::ios::binary)
        .read(reinterpret_cast<char*>(words.data()), static_cast<std::streamsize>(kBlocks * kBlock));
    std::uint64_t first = ~std::uint64_t{0};
    EXPECT_EQ(storage::count_wrong(reinterpret_cast<std::byte*>(words.data()), kBlocks * kBlock, kKey + 9, 0, first),
              0u);
  }

  /// An engine that is closed while requests are in flight waits for them or ends them.
  void closes_while_requests_are_in_flight() {
    const std::vector<storage::File> files{content_file(folder_ / "a", kBlocks * kBlock, kKey)};
    const Buffer memory = device_.allocate_device(kDepth * kBlock);
    const auto engine = open(files, storage::Operation::read, false);
    std::size_t taken = 0;
    while (taken <= kDepth &&
           engine->submit({taken, 0, taken * kBlock, kBlock, memory.data() + taken % kDepth * kBlock})) {
      ++taken;
    }
    EXPECT_EQ(taken, kDepth) << "no more requests than the depth are accepted";
    engine->flush();
  }

 private:
  storage::EnginePoint point(storage::Operation operation, bool direct) const {
    return {operation, direct, kBlock, kDepth, std::string(device_.kind()), own()};
  }
  std::unique_ptr<storage::Engine> open(std::span<const storage::File> files, storage::Operation operation,
                                        bool direct) {
    return entry_.make({{.files = files,
                         .device = device_,
                         .operation = operation,
                         .direct = direct,
                         .block = kBlock,
                         .depth = kDepth},
                        own()});
  }
  /// Values of engines' own axes that the checks need.
  Values own() const {
    Values all{{"ring-issue", std::string("host")}, {"gpu-threads", std::uint64_t{128}}};
    all.insert(more_.begin(), more_.end());
    return all;
  }
  static std::vector<storage::Completion> run(storage::Engine& engine, std::span<const storage::Request> requests) {
    std::vector<storage::Completion> all;
    std::size_t next = 0;
    Backoff backoff;
    const std::uint64_t deadline = now_ns() + 60'000'000'000;
    while (all.size() < requests.size() && now_ns() < deadline) {
      while (next < requests.size() && engine.submit(requests[next])) ++next;
      engine.flush();
      std::array<storage::Completion, 4> ended;
      const std::size_t count = engine.poll(ended);
      all.insert(all.end(), ended.begin(), ended.begin() + count);
      if (count == 0) backoff.wait();
    }
    EXPECT_EQ(all.size(), requests.size()) << "every request must end exactly once";
    std::ranges::sort(all, {}, &storage::Completion::id);
    EXPECT_TRUE(std::ranges::adjacent_find(all, {}, &storage::Completion::id) == all.end());
    return all;
  }

  const storage::EngineEntry& entry_;
  Device& device_;
  Values more_;
  TempDir folder_;
};

}  // namespace feedrate::test
