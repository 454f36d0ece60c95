// Devices that only an engine can access: the experiment fills and verifies them through the engine.
#include <gtest/gtest.h>

#include <cstring>
#include <deque>

#include "experiments/harness/measure/session.hpp"
#include "variants/storage/engine.hpp"

namespace feedrate::storage {
namespace {

/// The bytes of a drive that no file names, which engines of this process share.
std::vector<std::byte>& drive() {
  static std::vector<std::byte> bytes(1 << 20);
  return bytes;
}
constexpr std::uint64_t kAll = ~std::uint64_t{0};
std::uint64_t kept_writes = kAll;  // later writes are lost
std::uint64_t lost_writes = 0;

class MemoryDrive final : public Engine {
 public:
  explicit MemoryDrive(const EngineConfig& config) : config_(config) {}
  bool submit(const Request& request) override {
    if (ended_.size() == config_.depth) return false;
    if (config_.operation == Operation::read) {
      std::memcpy(request.device, drive().data() + request.offset, request.bytes);
    } else if (kept_writes == 0) {
      ++lost_writes;
    } else {
      --kept_writes;
      std::memcpy(drive().data() + request.offset, request.device, request.bytes);
    }
    ended_.push_back({request.id, 0, request.bytes});
    return true;
  }
  std::size_t poll(std::span<Completion> ended) override {
    if (ended.empty() || ended_.empty()) return 0;
    ended[0] = ended_.front();
    ended_.pop_front();
    return 1;
  }

 private:
  EngineConfig config_;
  std::deque<Completion> ended_;
};

const EngineRegistration registered("memory_drive", {.description = "a drive in memory, for tests",
                                                     .own_storage = true,
                                                     .make = make_engine<MemoryDrive>});

Json run(const char* operation, std::uint64_t size = 1 << 20, double seconds = 0.02) {
  Session session("storage", "cpu", 0, {}, "test", {.seconds = seconds});
  Values values{{"engine", std::string("memory_drive")}, {"operation", std::string(operation)},
                {"target", std::string("the drive")},    {"overwrite", std::string("yes")},
                {"direct", std::string("yes")},          {"size", size},
                {"block", std::uint64_t{4096}},          {"depth", std::uint64_t{4}}};
  const Resolution point = session.resolve(values);
  EXPECT_EQ(point.impossible, "");
  return session.run_cell(point, 0);
}

TEST(OwnStorage, DeviceIsFilledThroughTheEngineBeforeItIsRead) {
  kept_writes = kAll;
  std::ranges::fill(drive(), std::byte{7});
  const Json row = run("read");
  EXPECT_NE(row["status"], "failed") << row["reason"];
  EXPECT_EQ(std::ranges::count(drive(), std::byte{7}) > 100'000, false) << "the drive has been written";
}

TEST(OwnStorage, WrittenBlocksAreReadBackThroughTheEngine) {
  kept_writes = kAll;
  EXPECT_NE(run("write")["status"], "failed");
  // All writes are lost, or those after the first pass over the 16 blocks.
  for (const std::uint64_t kept : {0, 16}) {
    Json row;
    lost_writes = 0;
    // A busy machine may write too little in a short time.
    for (double seconds = 0.02; lost_writes == 0 && seconds < 60; seconds *= 4) {
      kept_writes = kept;
      row = run("write", 16 * 4096, seconds);
    }
    EXPECT_EQ(row["status"], "failed") << kept;
    EXPECT_NE(row["reason"].get<std::string>().find("words are wrong"), std::string::npos) << row["reason"];
  }
  kept_writes = kAll;
}

}  // namespace
}  // namespace feedrate::storage
