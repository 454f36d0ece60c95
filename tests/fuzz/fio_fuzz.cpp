// libFuzzer target; tests/fuzz/run.sh builds and runs it. What fio printed is a positive rate, or is rejected.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "common/error.hpp"
#include "experiments/storage/fio.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace feedrate;
  for (const bool read : {true, false}) {
    try {
      const double rate = storage::fio_bytes_per_second({reinterpret_cast<const char*>(data), size}, read);
      if (!std::isfinite(rate) || rate <= 0) std::abort();
    } catch (const Failure&) {
    }
  }
  return 0;
}
