// libFuzzer target; tests/fuzz/run.sh builds and runs it.
#include <spdlog/spdlog.h>

#include "tests/fuzz/tasks_target.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  spdlog::set_level(spdlog::level::off);
  feedrate::test::read_foreign_tasks(data, size);
  return 0;
}
