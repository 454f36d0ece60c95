// libFuzzer target; tests/fuzz/run.sh builds and runs it.
#include "tests/fuzz/commands_target.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  feedrate::test::serve_foreign_commands(data, size);
  return 0;
}
