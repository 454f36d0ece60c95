#include "libraries/storage/uring.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace feedrate::storage {
namespace {

TEST(UringTest, FailureSaysHowToRemoveItsCause) {
  for (const auto& [error, advice] : {std::pair{ENOSYS, "seccomp profile"},
                                      {ENOSYS, "Linux 6.1"},
                                      {EPERM, "seccomp profile"},
                                      {EPERM, "sysctl kernel.io_uring_disabled=0"},
                                      {ENOMEM, "ulimit -l unlimited"}}) {
    const std::string text = Uring::failure("io_uring", -error).what();
    EXPECT_TRUE(text.starts_with(std::string("io_uring: ") + std::strerror(error))) << text;
    EXPECT_NE(text.find(advice), std::string::npos) << text;
  }
}

TEST(UringTest, OptionsThatTheKernelDoesNotKnowNeedANewerOne) {
  if (const std::string why = Uring::unavailable(); !why.empty()) GTEST_SKIP() << why;
  try {
    const Uring ring(2, 1u << 31);
    FAIL() << "accepted";
  } catch (const Failure& failure) {
    EXPECT_NE(std::string(failure.what()).find("Linux 6.1 or later"), std::string::npos) << failure.what();
  }
}

}  // namespace
}  // namespace feedrate::storage
