// libFuzzer target; tests/fuzz/run.sh builds and runs it.
#include "tests/fuzz/completions_target.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  feedrate::test::drain_foreign_completions(data, size);
  return 0;
}
