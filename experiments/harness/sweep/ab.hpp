#pragma once
#include <sys/types.h>

#include <cstdint>
#include <ext/stdio_filebuf.h>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "experiments/harness/json.hpp"

namespace feedrate {

/// Version of the lines that the two sides of `ab` exchange with the command.
inline constexpr unsigned kAbVersion = 2;

/// One side of a comparison: an executable that runs as `feedrate ab-side`, measures the requested slices and writes
/// its rows to its own results folder. Requests and answers are lines of JSON. Between requests it is idle.
class Side {
 public:
  /// Starts the process; its stderr is appended to `log`. Throws Failure.
  Side(std::string name, std::vector<std::string> words, const std::filesystem::path& log);
  Side(Side&&) = delete;
  ~Side();

  const std::string& name() const { return name_; }
  void write(const Json& request);
  /// Returns the next line. If the process has closed its output, throws with the last line of its log: BadInput if its
  /// exit code says that its input was invalid, else Failure.
  Json read();
  Json ask(const Json& request) { return write(request), read(); }
  /// Ends the requests and waits until the process has exited; kills it if it does not. Returns its wait status, or 0
  /// if it was closed before.
  int close();

 private:
  using FileBuffer = __gnu_cxx::stdio_filebuf<char>;
  [[noreturn]] void report_end();

  std::string name_;
  std::filesystem::path log_;
  pid_t child_ = -1;
  FileBuffer requests_, answers_;
};

/// How often both executables start, and how long they measure. Properties of a process, such as its placement in
/// memory, last for its lifetime and change results by several percent, so the starts are the independent observations.
struct AbPlan {
  std::vector<std::uint64_t> points;  ///< numbers of the points to measure
  unsigned starts = 0;                ///< number of starts of each side
  double seconds = 0;                 ///< time for all starts together
  std::uint64_t seed = 1;
};
/// Number of starts with which the ratio has an interval of useful width, and with which it has one at all.
inline constexpr unsigned kLeastStarts = 16, kStartsForInterval = 6;
/// Number of blocks of four slices that each visit to a point measures at least.
inline constexpr unsigned kLeastBlocks = 2;

/// Plans a comparison that takes `seconds`. If there is not enough time to visit every point in every start, measures
/// as many points as possible, taken from the variants in turn. `variants`: the variant of each point; `visit`: seconds
/// that a visit takes at least; `starts`: number of starts, 0: as many as fit, at least kLeastStarts. Throws BadInput
/// if there is not even time for one point.
AbPlan plan_ab(const std::vector<std::string>& variants, double seconds, double visit, unsigned starts);

struct AbCalls {
  /// Starts both sides.
  std::function<void(unsigned start)> start;
  /// Measures one slice. Returns false if this point cannot be measured.
  std::function<bool(char side, std::uint64_t point, std::uint64_t block, unsigned place)> slice;
  /// Ends the visit to a point, on both sides.
  std::function<void(std::uint64_t point)> end;
  std::function<bool()> stop;       ///< whether to end early
  std::function<double()> elapsed;  ///< seconds since the first start
};

/// Measures all points in every start, in shuffled order. A visit to a point measures blocks of four slices in the
/// order A B B A or B A A B, chosen at random, so that a drift that is linear in time cancels in every block, and a
/// disturbance with a period of its own cannot favour one side.
void measure_slices(const AbPlan&, const AbCalls&);

}  // namespace feedrate
