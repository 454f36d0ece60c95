#pragma once
#include <sys/types.h>

#include <cstdint>
#include <ext/stdio_filebuf.h>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "experiments/harness/json.hpp"

namespace feedrate {

/// One side of a comparison: an executable that runs as `feedrate ab-side`, measures the requested cells and writes its
/// rows to its own results folder. Requests and answers are lines of JSON.
class Side {
 public:
  /// Starts the process; its stderr is appended to `log`. Throws Failure.
  Side(std::string name, std::vector<std::string> words, const std::filesystem::path& log);
  Side(Side&&) = delete;
  ~Side();

  const std::string& name() const { return name_; }
  /// Returns the next line: first the side's points, then one answer per request. If the process has closed its output,
  /// throws with the last line of its log: BadInput if its exit code says that its input was invalid, else Failure.
  Json read();
  void ask(std::uint64_t point, std::uint64_t pair, std::uint64_t start);
  /// Ends the requests and waits until the process has exited. Returns its wait status, or 0 if it was closed before.
  int close();

 private:
  using FileBuffer = __gnu_cxx::stdio_filebuf<char>;
  [[noreturn]] void report_end();

  std::string name_;
  std::filesystem::path log_;
  pid_t child_ = -1;
  FileBuffer requests_, answers_;
};

/// Measures every point in pairs on both sides. Points are visited in an order shuffled by `seed`. Each visit measures
/// two pairs in the order A B B A, so that a drift of the machine that is linear in time cancels. `tell` receives the
/// point, the pair and both answers. `start` is called with the number of the start before the first pairs, and again
/// after every `per_start` pairs, because effects that last for one process's lifetime, such as its memory addresses,
/// differ between starts. Returns when all pairs are measured or `stop` returns true.
struct PairPlan {
  std::uint64_t points = 0;  ///< number of points
  std::uint64_t pairs = 0;   ///< number of pairs per point; even
  std::uint64_t seed = 1;
  std::uint64_t per_start = 2;  ///< number of pairs per point between restarts; even
};
void measure_pairs(
    const PairPlan&, const std::function<void(std::uint64_t start)>& start,
    const std::function<Json(char side, std::uint64_t point, std::uint64_t pair)>& ask,
    const std::function<void(std::uint64_t point, std::uint64_t pair, const Json& a, const Json& b)>& tell,
    const std::function<bool()>& stop);

}  // namespace feedrate
