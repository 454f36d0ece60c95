#pragma once
#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "experiments/harness/json.hpp"

namespace feedrate {

/// One side of a comparison: an executable that runs as `feedrate ab-side`, measures the cell that it is asked for, and
/// writes its rows into a results folder of its own. Asked and answered a line at a time, in JSON.
class Side {
 public:
  /// Starts it; its stderr goes to the end of `log`. Throws Failure.
  Side(std::string name, const std::vector<std::string>& words, const std::filesystem::path& log);
  Side(Side&&) = delete;
  ~Side();

  const std::string& name() const { return name_; }
  /// What it says next: first its points, then one answer a question. Throws Failure with the end of its log when it
  /// says nothing more.
  Json read();
  void ask(std::uint64_t point, std::uint64_t pair, std::uint64_t start);
  /// No more questions: waits until it has ended.
  void close();

 private:
  std::string why_ended() const;

  std::string name_;
  std::filesystem::path log_;
  pid_t child_ = -1;
  int to_ = -1, from_ = -1;
  std::string unread_;
};

/// Measures every point in pairs on both sides: visit by visit, in an order shuffled by `seed`, each visit two pairs in
/// the order A B B A, so that a drift of the machine that is linear in time cancels. `tell` gets the point, the pair
/// and both answers. Before the first pairs, and again after every `per_start` of them, `start` gets the number of the
/// start: what a process keeps for its life, such as where its memory lies, differs from one start to the next. Returns
/// when all pairs are measured, or the user interrupted.
struct PairPlan {
  std::uint64_t points = 0, pairs = 0;  ///< pairs of each point, an even number
  std::uint64_t seed = 1;
  std::uint64_t per_start = 2;  ///< an even number
};
void measure_pairs(
    const PairPlan&, const std::function<void(std::uint64_t start)>& start,
    const std::function<Json(char side, std::uint64_t point, std::uint64_t pair)>& ask,
    const std::function<void(std::uint64_t point, std::uint64_t pair, const Json& a, const Json& b)>& tell,
    const std::function<bool()>& stop);

}  // namespace feedrate
