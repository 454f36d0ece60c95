// libFuzzer target; tests/fuzz/run.sh builds and runs it. A file header is read or rejected; a header that was written
// can be read again.
#include <cstdlib>
#include <sstream>

#include "common/error.hpp"
#include "experiments/cli/npy.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace feedrate;
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  for (const char* dtype : {"", "bf16"}) {
    try {
      std::istringstream file(bytes);
      const NpyHeader header = read_npy_header(file, dtype);
      if (header.data_at > size) std::abort();
      const std::string again = npy_header(header.layout.dtype, header.layout.shape);
      if (again.size() % 64 != 0) std::abort();
      std::istringstream written(again);
      const NpyHeader found = read_npy_header(written, dtype);
      if (found.layout.shape != header.layout.shape || found.layout.dtype != header.layout.dtype) std::abort();
    } catch (const BadInput&) {
    }
  }
  return 0;
}
