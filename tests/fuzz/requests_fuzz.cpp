// libFuzzer target; tests/fuzz/run.sh builds and runs it.
#include "tests/fuzz/requests_target.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  feedrate::test::serve_foreign_requests(data, size);
  return 0;
}
