#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>

#include "tests/fuzz/commands_target.hpp"
#include "tests/fuzz/completions_target.hpp"

namespace feedrate {
namespace {

/// Calls `read` with the inputs of a fuzz target and with changed ones; returns the number of inputs.
template <class Read>
std::size_t replay(const std::string& target, int changes, const Read& read) {
  std::mt19937 random(7);
  std::size_t inputs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(FEEDRATE_SOURCE_DIR "/tests/fuzz/corpus/" + target)) {
    std::ifstream file(entry.path(), std::ios::binary);
    std::vector<std::uint8_t> bytes(std::istreambuf_iterator<char>(file), {});
    read(bytes.data(), bytes.size());
    ++inputs;
    for (int i = 0; i < changes; ++i) {
      auto changed = bytes;
      for (unsigned n = 1 + random() % 3; n != 0; --n) {
        changed[random() % changed.size()] = static_cast<std::uint8_t>(random());
      }
      read(changed.data(), changed.size());
    }
  }
  return inputs;
}

TEST(ForeignCompletions, AreReadWithinTheQueue) {
  EXPECT_GE(replay("completions", 500, test::drain_foreign_completions), 2u);
}

TEST(ForeignCommands, AreServedOrRejected) {
  if (const std::string reason = storage::Uring::unavailable(); !reason.empty()) GTEST_SKIP() << reason;
  EXPECT_GE(replay("commands", 30, test::serve_foreign_commands), 5u);
}

}  // namespace
}  // namespace feedrate
