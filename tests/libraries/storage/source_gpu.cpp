#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

#include "common/device/cuda_check.hpp"
#include "feedrate/storage.hpp"
#include "libraries/storage/uring.hpp"
#include "tests/support/temp_dir.hpp"

namespace feedrate::storage {
namespace {

constexpr std::size_t kFileBytes = 40'000'000;

class StorageSourceOnGpu : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (std::string(GetParam()) == "io_uring" && !Uring::unavailable().empty()) GTEST_SKIP() << Uring::unavailable();
    std::mt19937_64 random(3);
    all_.resize(kFileBytes);
    for (std::size_t i = 0; i < all_.size(); i += 8) {
      const std::uint64_t word = random();
      std::memcpy(&all_[i], &word, 8);
    }
    std::ofstream(path_, std::ios::binary).write(reinterpret_cast<const char*>(all_.data()), kFileBytes);
    check(cudaMalloc(&memory_, kFileBytes), "cudaMalloc");
    check(cudaMemset(memory_, 0xEE, kFileBytes), "cudaMemset");
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }
  void TearDown() override { cudaFree(memory_); }
  SourceOptions options() const { return {.device = "cuda", .engine = GetParam(), .block = 1 << 20, .depth = 16}; }
  std::vector<unsigned char> copied(std::size_t bytes) const {
    std::vector<unsigned char> host(bytes);
    check(cudaMemcpy(host.data(), memory_, bytes, cudaMemcpyDeviceToHost), "cudaMemcpy");
    return host;
  }

  test::TempDir folder_;
  std::string path_ = folder_ / "data";
  std::vector<unsigned char> all_;
  unsigned char* memory_ = nullptr;
};

TEST_P(StorageSourceOnGpu, LargeReadsArrive) {
  Source source({path_}, options());
  source.read_bytes(13, kFileBytes - 13, memory_);
  const auto got = copied(kFileBytes - 13);
  EXPECT_TRUE(std::equal(got.begin(), got.end(), all_.begin() + 13));
}

/// Records of odd sizes at odd places, which a kernel scatters; the bytes between the places stay.
TEST_P(StorageSourceOnGpu, ScatteredRecordsArriveAndNothingElseChanges) {
  Source source({path_}, options());
  std::mt19937_64 random(5);
  for (const std::size_t bytes : {1u, 100u, 997u, 4096u, 70'001u}) {
    const std::uint64_t start = random() % 100;
    const unsigned kind = source.add_kind({.start = start, .record_bytes = bytes});
    std::vector<Record> batch;
    std::vector<unsigned char> wanted(kFileBytes, 0xEE);
    check(cudaMemset(memory_, 0xEE, kFileBytes), "cudaMemset");
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    std::size_t place = 0;
    for (int i = 0; i < 400; ++i) {
      const std::uint64_t index = random() % source.records(kind);
      place += random() % 33;
      batch.push_back({kind, index, memory_ + place});
      std::memcpy(&wanted[place], &all_[start + index * bytes], bytes);
      place += bytes;
    }
    source.read_batch(batch);
    EXPECT_TRUE(copied(kFileBytes) == wanted) << bytes;
  }
}

TEST_P(StorageSourceOnGpu, ReadRunsInTheOrderOfAStream) {
  Source source({path_}, options());
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
  unsigned char* host = nullptr;  // pinned: a copy to pageable memory would block in the driver
  check(cudaMallocHost(&host, kFileBytes), "cudaMallocHost");
  for (int turn = 0; turn < 20; ++turn) {
    const std::size_t start = static_cast<std::size_t>(turn) * 1000, bytes = 20'000'000;
    check(cudaMemsetAsync(memory_, 0xDD, bytes, stream), "cudaMemsetAsync");  // must not overwrite what is read
    const Pending read = source.read_bytes_async(start, bytes, memory_, Order::in(stream));
    check(cudaMemcpyAsync(host, memory_, bytes, cudaMemcpyDeviceToHost, stream), "cudaMemcpyAsync");
    check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    read.wait();
    ASSERT_EQ(std::memcmp(host, &all_[start], bytes), 0) << turn;
  }
  cudaFreeHost(host);
  cudaStreamDestroy(stream);
}

TEST_P(StorageSourceOnGpu, FailedReadLetsTheStreamGoOn) {
  Source source({path_}, options());
  std::filesystem::resize_file(path_, 1000);
  const Pending read = source.read_bytes_async(0, kFileBytes, memory_, Order::in(nullptr));
  check(cudaStreamSynchronize(nullptr), "cudaStreamSynchronize");
  EXPECT_THROW(read.wait(), StorageError);
}

TEST_P(StorageSourceOnGpu, WrittenBytesAreInTheFile) {
  SourceOptions writable = options();
  writable.writable = true;
  Source source({path_}, writable);
  source.read_bytes(0, 5'000'000, memory_);
  source.write_bytes(20'000'001, 5'000'000, memory_);
  source.read_bytes(20'000'001, 5'000'000, memory_ + 7);
  std::vector<unsigned char> host(5'000'000);
  check(cudaMemcpy(host.data(), memory_ + 7, host.size(), cudaMemcpyDeviceToHost), "cudaMemcpy");
  EXPECT_TRUE(std::equal(host.begin(), host.end(), all_.begin()));
}

INSTANTIATE_TEST_SUITE_P(Each, StorageSourceOnGpu, testing::Values("threads", "io_uring"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace feedrate::storage
