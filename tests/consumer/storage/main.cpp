// with_static cpu|cuda: uses feedrate/storage.hpp. It reads records of two kinds from a file of its own.
#include <feedrate/storage.hpp>

#include <stdlib.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

using feedrate::storage::Record;
using feedrate::storage::Source;

extern "C" int read_by_c(const char* path);  // by_c.c

namespace {

void expect(bool right, const char* what) {
  if (!right) throw std::runtime_error(what);
}

/// A temporary folder that is removed with its contents.
struct Folder {
  std::string path = std::filesystem::temp_directory_path() / "feedrate_XXXXXX";
  Folder() { expect(mkdtemp(path.data()) != nullptr, "mkdtemp"); }
  ~Folder() { std::filesystem::remove_all(path); }
};

}  // namespace

int main(int count, char** words) try {
  expect(count == 2, "usage: with_static cpu|cuda");
  const Folder folder;
  const std::string path = folder.path + "/numbers";
  std::vector<std::uint32_t> numbers(100'000);
  std::iota(numbers.begin(), numbers.end(), 0u);
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(numbers.data()), static_cast<std::streamsize>(4 * numbers.size()));

  Source source({path}, {.device = words[1]});
  const unsigned rows = source.add_kind({.name = "rows", .record_bytes = 400});
  const unsigned words_of_all = source.add_kind({.name = "words", .record_bytes = 4});
  std::vector<std::uint32_t> got(200);
  source.read(rows, 10, 2, got.data());
  expect(got.front() == 1000 && got.back() == 1199, "wrong rows");
  auto later = source.read_batch_async(
      std::vector<Record>{{words_of_all, 99'999, got.data()}, {words_of_all, 7, &got[1]}, {rows, 3, &got[2]}});
  later.wait();
  expect(got[0] == 99'999 && got[1] == 7 && got[2] == 300, "wrong batch");
  try {
    source.read(rows, 999, 2, got.data());
    throw std::runtime_error("read beyond the end");
  } catch (const feedrate::BadInput& e) {
    expect(std::string(e.what()).find("'rows'") != std::string::npos, "the error does not name the kind");
  }
  expect(read_by_c(path.c_str()) == 0, "the interface in C failed");
  std::printf("%llu records, by %s\n", static_cast<unsigned long long>(source.statistics().records),
              source.engine().c_str());
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
