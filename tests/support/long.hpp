#pragma once
#include <cstdlib>
#include <vector>

/// `tests/run_tests.sh --long` sets LONG_TESTS. Without this variable, tests run only the cases that take
/// seconds.
namespace feedrate::test {

inline bool long_tests() { return std::getenv("LONG_TESTS") != nullptr; }

/// Returns `cases` in a long run, and no cases in a short run.
template <class Case>
std::vector<Case> in_long_tests(std::vector<Case> cases) {
  return long_tests() ? cases : std::vector<Case>();
}

/// Returns all cases in a long run, and every `step`-th case in a short run. Under ThreadSanitizer, which is ten times
/// slower, a short run has only a third of these.
template <class Case>
std::vector<Case> thinned(const std::vector<Case>& cases, std::size_t step) {
  if (long_tests()) return cases;
#ifdef __SANITIZE_THREAD__
  step *= 3;
#endif
  std::vector<Case> some;
  for (std::size_t i = 0; i < cases.size(); i += step) some.push_back(cases[i]);
  return some;
}

}  // namespace feedrate::test
