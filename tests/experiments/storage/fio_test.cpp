#include "experiments/storage/fio.hpp"

#include <gtest/gtest.h>

#include "common/error.hpp"

namespace feedrate::storage {
namespace {

std::string failure(std::string_view text) {
  try {
    fio_bytes_per_second(text, true);
  } catch (const Failure& failure) {
    return failure.what();
  }
  return "accepted";
}

TEST(FioTest, RateOfTheDirectionIsRead) {
  const char* const text =
      "fio: a warning\n{\"jobs\": [{\"read\": {\"bw_bytes\": 12}, \"write\": {\"bw_bytes\": 34.5}}]}";
  EXPECT_EQ(fio_bytes_per_second(text, true), 12);
  EXPECT_EQ(fio_bytes_per_second(text, false), 34.5);
}

TEST(FioTest, OutputWithoutARateIsReported) {
  EXPECT_EQ(failure(""), "fio did not run; install it (Debian package fio)");
  for (const char* text : {"fio: engine io_uring not loadable", "{", "[]", "{\"jobs\": []}", "{\"jobs\": {}}",
                           "{\"jobs\": [7]}", "{\"jobs\": [{\"read\": []}]}",
                           "{\"jobs\": [{\"read\": {\"bw_bytes\": \"x\"}}]}", "{\"jobs\": [{\"read\": {\"bw_by"}) {
    EXPECT_EQ(failure(text), "fio printed no results") << text;
  }
  EXPECT_EQ(failure("{\"jobs\": [{\"read\": {\"bw_bytes\": 0}}]}"), "fio moved no bytes");
  EXPECT_EQ(failure("{\"jobs\": [{\"read\": {\"bw_bytes\": -1}}]}"), "fio moved no bytes");
}

}  // namespace
}  // namespace feedrate::storage
