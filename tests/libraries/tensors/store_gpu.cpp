// GPU memory shared between processes: the daemon and the commands run in separate processes.
#include <cuda_runtime.h>

#include <thread>

#include "common/device/cuda_check.hpp"
#include "common/device/device.hpp"
#include "feedrate/tensors.hpp"
#include "libraries/tensors/protocol.hpp"
#include "tests/cli/feedrate_process.hpp"

namespace feedrate::cli_test {
namespace {

using tensors::Dtype;
using tensors::SharedEvent;
using tensors::Store;
using tensors::Tensor;

constexpr std::size_t kMi = std::size_t{1} << 20;

/// The first word of a tensor.
std::uint32_t read_back(const Tensor& tensor) {
  std::uint32_t word = 0;
  tensor.read(std::as_writable_bytes(std::span(&word, 1)));
  return word;
}

/// Tests of each way of sharing GPU memory.
class GpuStore : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (const auto reason = cuda_unavailable(); !reason.empty()) GTEST_SKIP() << reason;
    daemon_ = place_.start(
        {"store", "serve", "--socket", socket(), "--memory", "1Gi", "--device", "cuda:0", "--share", GetParam()});
    EXPECT_TRUE(await([&] { return daemon_->ended() || daemon_->err().find(" at " + socket()) != std::string::npos; }));
    EXPECT_FALSE(daemon_->ended()) << daemon_->err();
  }
  static std::vector<std::uint32_t> pattern(std::size_t words) {
    std::vector<std::uint32_t> made(words);
    for (std::size_t i = 0; i < words; ++i) made[i] = static_cast<std::uint32_t>(i * 2654435761u);
    return made;
  }
  static std::vector<std::uint32_t> read(const Tensor& tensor) {
    std::vector<std::uint32_t> words(tensor.bytes() / 4);
    tensor.read(std::as_writable_bytes(std::span(words)));
    return words;
  }
  static std::size_t free_bytes() {
    std::size_t free = 0, all = 0;
    check(cudaMemGetInfo(&free, &all), "cudaMemGetInfo");
    return free;
  }
  std::string socket() const { return place_ / "s"; }

  Workplace place_;
  std::unique_ptr<Process> daemon_;
};

TEST_P(GpuStore, MemoryIsZeroedAndSharedWithOtherProcesses) {
  Store store(socket());
  for (const std::int64_t words : {100, 1 << 20, 16 << 20}) {
    const std::string name = "t" + std::to_string(words);
    Tensor made = store.create(name, {Dtype::u32, {words}, {}});
    EXPECT_EQ(made.cuda_index(), 0);
    cudaPointerAttributes found{};
    check(cudaPointerGetAttributes(&found, made.data()), "cudaPointerGetAttributes");
    EXPECT_EQ(found.type, cudaMemoryTypeDevice);
    EXPECT_EQ(read(made), std::vector<std::uint32_t>(made.bytes() / 4, 0));
    const auto wanted = pattern(made.bytes() / 4);
    made.write(std::as_bytes(std::span(wanted)));
    made.publish();
    const std::string file = place_ / (name + ".npy");
    const Outcome outcome = place_.run({"store", "get", name, file, "--socket", socket()});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const std::string bytes = read_text(file);
    EXPECT_EQ(std::memcmp(bytes.data() + bytes.size() - made.bytes(), wanted.data(), made.bytes()), 0);
    const Outcome back = place_.run({"store", "put", name + "-2", file, "--socket", socket()});
    ASSERT_EQ(back.code, 0) << back.err;
    EXPECT_EQ(read(store.get(name + "-2")), wanted);
  }
}

TEST_P(GpuStore, DeletedMemoryIsFreedAndNewMemoryIsZeroed) {
  Store store(socket());
  store.create("warm", {Dtype::u8, {1}, {}});
  const std::size_t before = free_bytes();
  for (int round = 0; round < 5; ++round) {
    Tensor made = store.create("x", {Dtype::u32, {64 << 20}, {}});
    EXPECT_LE(free_bytes(), before - 200 * kMi);
    EXPECT_GE(free_bytes(), before - 300 * kMi);
    store.remove("x");
    EXPECT_EQ(read(made)[(64 << 20) - 1], 0u) << "the lease must keep the memory";
    check(cudaMemset(made.data(), 0xEE, made.bytes()), "cudaMemset");
    made = {};
    // An exported pool keeps all memory that it ever had; the driver frees none of it (CUDA's programming guide,
    // limitations of such pools). The pool reuses this memory, so that no round takes more than the first.
    const std::size_t kept = GetParam() == "pool" ? 256 * kMi : 0;
    ASSERT_TRUE(await([&] { return free_bytes() + kept >= before; })) << "round " << round;
    Tensor small = store.create("y", {Dtype::u32, {1000}, {}});
    EXPECT_EQ(read(small), std::vector<std::uint32_t>(1000, 0));
    check(cudaMemset(small.data(), 0xEE, small.bytes()), "cudaMemset");
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    store.remove("y");
  }
}

TEST_P(GpuStore, MappedMemorySurvivesTheDaemonsDeath) {
  Store store(socket());
  const Tensor held = store.create("x", {Dtype::u32, {8 << 20}, {}});
  const auto wanted = pattern(8 << 20);
  held.write(std::as_bytes(std::span(wanted)));
  daemon_->signal(SIGKILL);
  daemon_->wait();
  EXPECT_EQ(read(held), wanted);
}

TEST_P(GpuStore, LeaseEndsAfterQueuedGpuWork) {
  Store store(socket());
  Tensor made = store.create("x", {Dtype::u32, {32 << 20}, {}});
  for (int i = 0; i < 200; ++i) check(cudaMemsetAsync(made.data(), i, made.bytes()), "cudaMemsetAsync");
  store.remove("x");
  made = {};  // queued work still writes to the memory
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
}

TEST_P(GpuStore, WritesQueuedByAFormerHolderDoNotReachTheNextHolder) {
  // Small tensors lie side by side in a chunk, and the next tensor of the same size reuses the gap that one left.
  Store store(socket());
  const Tensor neighbour = store.create("neighbour", {Dtype::u32, {1000}, {}});
  const auto wanted = pattern(1000);
  neighbour.write(std::as_bytes(std::span(wanted)));
  std::byte* slow = nullptr;
  constexpr std::size_t kSlowBytes = std::size_t{1} << 30;
  check(cudaMalloc(&slow, kSlowBytes), "cudaMalloc");
  for (int round = 0; round < 5; ++round) {
    Tensor former = store.create("x", {Dtype::u32, {1 << 18}, {}});
    void* const place = former.data();
    for (int i = 0; i < 3; ++i) check(cudaMemsetAsync(slow, i, kSlowBytes), "cudaMemsetAsync");
    check(cudaMemsetAsync(former.data(), 0xEE, former.bytes()), "cudaMemsetAsync");
    store.remove("x");
    former = {};
    const Tensor next = store.create("x", {Dtype::u32, {1 << 18}, {}});
    EXPECT_EQ(next.data(), place) << "the memory was not reused, so the test proves nothing";
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    EXPECT_EQ(read(next), std::vector<std::uint32_t>(1 << 18, 0)) << "round " << round;
    store.remove("x");
  }
  EXPECT_EQ(read(neighbour), wanted);
  cudaFree(slow);
}

TEST_P(GpuStore, SignalEndsTheDaemonCleanlyDespiteMappings) {
  Store store(socket());
  const Tensor large = store.create("large", {Dtype::u32, {8 << 20}, {}}),
               small = store.create("small", {Dtype::u32, {9}, {}});
  daemon_->signal(SIGTERM);
  EXPECT_EQ(daemon_->wait(), 0) << daemon_->err();
  for (const Tensor& tensor : {large, small}) {
    const auto wanted = pattern(tensor.bytes() / 4);
    tensor.write(std::as_bytes(std::span(wanted)));
    EXPECT_EQ(read(tensor), wanted);
  }
}

TEST_P(GpuStore, StreamsWaitForVersionsPublishedByOtherStreams) {
  // Two connections represent two processes, because a connection that has waited for a version publishes only later
  // ones.
  Store store(socket()), writers(socket());
  const Tensor of_reader = store.create("x", {Dtype::u32, {1 << 20}, {}});
  Tensor of_writer = writers.get("x");
  cudaStream_t writer = nullptr, reader = nullptr;
  check(cudaStreamCreateWithFlags(&writer, cudaStreamNonBlocking), "cudaStreamCreate");
  check(cudaStreamCreateWithFlags(&reader, cudaStreamNonBlocking), "cudaStreamCreate");
  std::uint32_t *seen = nullptr, *slow = nullptr;
  constexpr std::size_t kSlowBytes = std::size_t{1} << 30;
  check(cudaMallocHost(&seen, 4 * sizeof(std::uint32_t)), "cudaMallocHost");
  check(cudaMalloc(&slow, kSlowBytes), "cudaMalloc");
  for (std::uint64_t version = 1; version <= 4; ++version) {
    // The reader is queued first. It reads the last word that the slow writer writes.
    of_reader.wait_on(reader, version);
    check(cudaMemcpyAsync(seen + version - 1, static_cast<std::uint32_t*>(of_reader.data()) + (1 << 20) - 1, 4,
                          cudaMemcpyDeviceToHost, reader),
          "cudaMemcpyAsync");
    EXPECT_EQ(cudaStreamQuery(reader), cudaErrorNotReady);
    for (int i = 0; i < 3; ++i) check(cudaMemsetAsync(slow, i, kSlowBytes, writer), "cudaMemsetAsync");
    check(cudaMemsetAsync(of_writer.data(), static_cast<int>(version), of_writer.bytes(), writer), "cudaMemsetAsync");
    EXPECT_EQ(of_writer.publish_on(writer), version);
    check(cudaStreamSynchronize(reader), "cudaStreamSynchronize");
    EXPECT_EQ(seen[version - 1], 0x01010101u * version);
    EXPECT_EQ(of_reader.version(), version);
  }
  // Versions published by the host continue the count of versions published by streams.
  of_writer.publish();
  EXPECT_TRUE(of_reader.wait_for(5, std::chrono::seconds(1)));
  of_reader.wait_on(reader, 5);
  EXPECT_EQ(cudaStreamSynchronize(reader), cudaSuccess);
  cudaFree(slow);
  cudaFreeHost(seen);
  cudaStreamDestroy(writer);
  cudaStreamDestroy(reader);
}

TEST_P(GpuStore, HalvesWrittenByAStreamAreNeverTorn) {
  constexpr std::int64_t kWords = 1 << 20;
  Store store(socket());
  Tensor of_writer = store.create("x", {Dtype::u32, {2, kWords}, {}});
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
  const Tensor of_reader = store.get("x");
  std::vector<std::uint32_t> words(kWords);
  unsigned read = 0;
  for (std::uint64_t version = 1; version <= 400; ++version) {
    const auto half = of_writer.begin_half_on(stream);
    check(cudaMemsetAsync(half.data(), static_cast<int>(version % 251), half.size(), stream), "cudaMemsetAsync");
    of_writer.publish_on(stream);
    if (version % 8 != 0) continue;  // the stream runs some versions ahead of its readers
    const std::uint64_t found = of_reader.read_half(std::as_writable_bytes(std::span(words)));
    const auto mark = static_cast<std::uint32_t>(0x01010101u * (found % 251));
    EXPECT_TRUE(std::ranges::all_of(words, [&](std::uint32_t word) { return word == mark; })) << "version " << found;
    ++read;
  }
  EXPECT_EQ(read, 50u);
  check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  EXPECT_EQ(of_writer.version(), 400u);
  cudaStreamDestroy(stream);
}

// Runs in another process: the test below starts this executable again.
TEST(SharedEventPeer, Waits) {
  const char* const handle = std::getenv("FEEDRATE_TEST_EVENT");
  if (handle == nullptr) GTEST_SKIP() << "runs as part of SharedEvents.OrderStreamsOfTwoProcesses";
  Store store(from_environment("FEEDRATE_TEST_STORE", ""));
  const Tensor tensor = store.get("x");
  const SharedEvent event = SharedEvent::open(tensors::of_hex(handle), 0);
  EXPECT_FALSE(event.done()) << "the event was already complete, so the test proves nothing";
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
  std::uint32_t* seen = nullptr;
  check(cudaMallocHost(&seen, sizeof *seen), "cudaMallocHost");
  event.wait_on(stream);
  check(cudaMemcpyAsync(seen, tensor.data(), sizeof *seen, cudaMemcpyDeviceToHost, stream), "cudaMemcpyAsync");
  check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  EXPECT_EQ(*seen, 0xEEEEEEEEu);
  EXPECT_TRUE(event.done());
}

TEST(SharedEvents, OrderStreamsOfTwoProcesses) {
  if (const auto reason = cuda_unavailable(); !reason.empty()) GTEST_SKIP() << reason;
  EXPECT_THROW(SharedEvent::open("short", 0), BadInput);
  Workplace place;
  const std::string socket = place / "s";
  const auto daemon = place.start({"store", "serve", "--socket", socket, "--memory", "1Gi", "--device", "cuda:0"});
  ASSERT_TRUE(await([&] { return daemon->ended() || daemon->err().find(" at " + socket) != std::string::npos; }));
  Store store(socket);
  const Tensor tensor = store.create("x", {Dtype::u32, {1000}, {}});
  const SharedEvent event = SharedEvent::create(0);
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
  void* slow = nullptr;
  constexpr std::size_t kSlowBytes = std::size_t{4} << 30;
  check(cudaMalloc(&slow, kSlowBytes), "cudaMalloc");
  // This takes some seconds, because the other process creates its context.
  for (int i = 0; i < 4000; ++i) check(cudaMemsetAsync(slow, i, kSlowBytes, stream), "cudaMemsetAsync");
  check(cudaMemsetAsync(tensor.data(), 0xEE, tensor.bytes(), stream), "cudaMemsetAsync");
  event.record(stream);
  const std::string command = "FEEDRATE_TEST_STORE=" + socket +
                              " FEEDRATE_TEST_EVENT=" + tensors::to_hex(event.handle()) + " '" +
                              std::filesystem::read_symlink("/proc/self/exe").string() +
                              "' --gtest_filter=SharedEventPeer.Waits >'" + (place / "peer.log").string() + "' 2>&1";
  EXPECT_EQ(std::system(command.c_str()), 0) << read_text(place / "peer.log");
  EXPECT_EQ(read_text(place / "peer.log").find("SKIPPED"), std::string::npos);
  check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  EXPECT_TRUE(event.done());
  cudaFree(slow);
}

TEST(GpuStoreWays, AutoChoosesTheFastest) {
  if (const auto reason = cuda_unavailable(); !reason.empty()) GTEST_SKIP() << reason;
  Workplace place;
  const std::string socket = place / "s";
  const auto daemon =
      place.start({"store", "serve", "--socket", socket, "--memory", "1Gi", "--device", "cuda:0", "--share", "auto"});
  ASSERT_TRUE(await([&] { return daemon->ended() || daemon->err().find(" at " + socket) != std::string::npos; }));
  ASSERT_FALSE(daemon->ended()) << daemon->err();
  const std::string log = daemon->err();
  std::string fastest;
  double least = 0;
  for (const std::string way : {"vmm", "pool", "legacy"}) {
    const auto at = log.find("--share " + way + ": 64 MiB created in ");
    ASSERT_NE(at, std::string::npos) << log;
    double made = 0, mapped = 0;
    ASSERT_EQ(
        std::sscanf(log.c_str() + log.find("created in", at), "created in %lf us, mapped in %lf us", &made, &mapped),
        2);
    if (fastest.empty() || made + mapped < least) fastest = way, least = made + mapped;
  }
  Store store(socket);
  EXPECT_EQ(Json::parse(store.status()).at("kind").get<std::string>().substr(0, fastest.size() + 1), fastest + ":")
      << log;
  EXPECT_EQ(read_back(store.create("x", {Dtype::u32, {100}, {}})), 0u);
}

TEST(GpuStoreElsewhere, UsesNoMemoryOnOtherGpus) {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess || count < 2) GTEST_SKIP() << "needs two GPUs";
  Workplace place;
  std::size_t before = 0, after = 0, all = 0;
  check(cudaMemGetInfo(&before, &all), "cudaMemGetInfo");
  const std::string socket = place / "s";
  const auto daemon =
      place.start({"store", "serve", "--socket", socket, "--memory", "1Gi", "--device", "cuda:1", "--share", "vmm"});
  ASSERT_TRUE(await([&] { return daemon->ended() || daemon->err().find(" at " + socket) != std::string::npos; }));
  {
    Store store(socket);
    Tensor made = store.create("x", {Dtype::u32, {64 << 20}, {}});
    EXPECT_EQ(made.cuda_index(), 1);
    int device = -1;
    check(cudaGetDevice(&device), "cudaGetDevice");
    EXPECT_EQ(device, 0) << "the thread's current device must not change";
    check(cudaMemGetInfo(&after, &all), "cudaMemGetInfo");
  }
  // A thread that has not used a GPU yet keeps the first GPU as its current device, even after using a store on another
  // GPU.
  std::thread([&] {
    Store store(socket);
    store.create("y", {Dtype::u32, {1 << 20}, {}});
    int device = -1;
    check(cudaGetDevice(&device), "cudaGetDevice");
    EXPECT_EQ(device, 0);
    void* own = nullptr;
    check(cudaMalloc(&own, 4), "cudaMalloc");
    cudaPointerAttributes found{};
    check(cudaPointerGetAttributes(&found, own), "cudaPointerGetAttributes");
    EXPECT_EQ(found.device, 0);
    cudaFree(own);
  }).join();
  EXPECT_GE(after + 16 * kMi, before) << "a context alone would take hundreds of MiB";
}

INSTANTIATE_TEST_SUITE_P(Each, GpuStore, testing::Values("vmm", "pool", "legacy"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace feedrate::cli_test
