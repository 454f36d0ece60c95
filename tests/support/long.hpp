#pragma once
#include <cstdlib>
#include <vector>

/// `tests/run_tests.sh --long` sets FEEDRATE_LONG_TESTS. Without it the tests run the cases that take seconds.
namespace feedrate::test {

inline bool long_tests() { return std::getenv("FEEDRATE_LONG_TESTS") != nullptr; }

/// These cases in a long run, none in a short one.
template <class Case>
std::vector<Case> in_long_tests(std::vector<Case> cases) {
  return long_tests() ? cases : std::vector<Case>();
}

/// All of these cases in a long run, every `step`th in a short one; of these a third under ThreadSanitizer, which slows
/// them by ten.
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
