#!/usr/bin/env bash
# Installs missing packages, builds, and runs every test that this machine supports; see --help.
set -euo pipefail
# shellcheck source=experiments/setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/../experiments/setup.sh"

usage() {
  cat <<'TEXT'
Usage: tests/run_tests.sh [--quick | --long | --coverage] [CTEST ARGUMENTS]

Builds the preset tests and runs the labels cpu, redis, cli and python; then builds the preset tsan and runs the
multithreaded tests under ThreadSanitizer. On a machine with a GPU, and with --long, the preset release is used instead of
tests; the label gpu runs if there is a GPU. The output ends with the duration of each suite, the slowest tests, the
skipped tests with their reasons, and the line `N passed, N failed, N skipped`. Exit codes: 0 all passed, 1 something
failed, 2 missing packages or bad arguments.

Takes about 15 minutes on two cores in a fresh clone, and about half as long after a change to one file.

  --quick          skip ThreadSanitizer
  --long           run all cases, for a release; takes far longer (tests/README.md lists what is added)
  --coverage       the short run in a build with coverage counters: prints the lines that no test runs, and line and
                   branch coverage per folder; also exits with 1 if fewer than 95 % of the lines ran
  CTEST ARGUMENTS  passed to every ctest, for example: -R Histogram, -L cpu, --repeat until-fail:5
TEXT
}

passed=0 failed=0 skipped=0
notes=()     # the parts that were left out, with reasons
failures=()
times=()     # durations of each suite and of the slowest tests
endings=()   # the last lines printed by failed tests, for readers who see only the end of a log
results=$FEEDRATE_ROOT/build/test-results

# run_ctest NAME PRESET CTEST-ARGUMENT…: runs the tests and adds their results to the totals.
run_ctest() {
  local name=$1 preset=$2 junit=$results/$1.xml kind rest status=0 p=0 f=0 s=0
  shift 2
  printf '\n== %s\n' "$name"
  times+=("== $name")
  rm -f "$junit"
  (cd "$FEEDRATE_ROOT" && "${FEEDRATE_WRAP[@]}" ctest --preset "$preset" --output-junit "$junit" "$@") || status=$?
  if [[ ! -s $junit ]]; then
    failed=$((failed + 1))
    failures+=("$name: ctest itself failed (exit $status)")
    return
  fi
  while read -r kind rest; do
    case $kind in
      count)
        read -r p f s <<<"$rest"
        passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
        if ((p + f + s == 0)); then notes+=("$name: no test matched"); fi
        ;;
      fail) failures+=("$name: $rest") ;;
      said) endings+=("$rest") ;;
      skip) notes+=("$name: ${rest%% *} skipped: ${rest#* }") ;;
      time) times+=("$rest") ;;
    esac
  done < <("$FEEDRATE_PYTHON" "$FEEDRATE_ROOT/tests/read_results.py" "$junit" "$preset")
  if ((status != 0 && f == 0)); then
    failed=$((failed + 1))
    failures+=("$name: ctest ended with exit code $status")
  fi
}

# Most tests spend most of their time waiting for servers, leases or killed processes.
jobs() { echo $((2 * $(nproc))); }

# Users measure with the release build; the tests preset compiles in half the time.
test_all() {   # test_all PRESET LABELS-LEFT-OUT CTEST-ARGUMENT…
  local preset=$1 without=$2
  shift 2
  locked build "$preset"
  run_ctest 'cpu, redis, cli, python' "$preset" -LE "$without" --no-tests=ignore --parallel "$(jobs)" "$@"
  if [[ $preset == coverage ]]; then
    notes+=('gpu: left out: coverage counts only code that runs without a GPU')
  elif [[ -z $FEEDRATE_NVCC ]]; then
    notes+=('gpu: not built: no CUDA compiler')
  elif has_gpu; then
    run_ctest gpu "$preset" -L '^gpu$' --no-tests=ignore "$@"
  else
    notes+=('gpu: left out: this machine has no GPU')
  fi
}

# ThreadSanitizer of g++ 12 and 13 fails ("unexpected memory mapping") if the kernel randomises addresses by more than
# 28 bits. The tests therefore run without randomisation if it can be switched off (containers may forbid this).
without_aslr() {
  local bits
  bits=$(cat /proc/sys/vm/mmap_rnd_bits 2>/dev/null || echo 0)
  if ((bits > 28)) && setarch "$(uname -m)" -R true 2>/dev/null; then FEEDRATE_WRAP=(setarch "$(uname -m)" -R); fi
}

test_tsan() {
  without_aslr
  locked build tsan tsan_tests   # only the targets that the tests below need
  run_ctest 'threads under ThreadSanitizer' tsan -LE "$1" --no-tests=ignore --parallel "$(jobs)" "${@:2}"
  FEEDRATE_WRAP=()
}

# The extra packages for coverage are installed into .venv/ on the first run with --coverage.
install_coverage() {
  suffices "$FEEDRATE_PYTHON" tests/coverage.txt && return
  say "installing from PyPI into .venv: $(names_in tests/coverage.txt)"
  FEEDRATE_TAIL=8 logged python-coverage pip_install -r "$FEEDRATE_ROOT/tests/coverage.txt" ||
    die 1 'the Python packages in tests/coverage.txt could not be installed'
}

report_coverage() {
  printf '\n== coverage\n'
  if ! "$FEEDRATE_PYTHON" "$FEEDRATE_ROOT/tests/coverage_report.py" "$FEEDRATE_ROOT/build/coverage"; then
    failed=$((failed + 1))
    failures+=('coverage: see above')
  fi
}

summary() {
  printf '\n== summary\n'
  printf '%s\n' "${times[@]}" "$@"
  ((${#notes[@]} == 0)) || printf '%s\n' "${notes[@]}"
  ((${#endings[@]} == 0)) || printf '%s\n' "${endings[@]}"
  ((${#failures[@]} == 0)) || printf 'FAILED %s\n' "${failures[@]}"
  printf '%s passed, %s failed, %s skipped\n' "$passed" "$failed" "$skipped"
}

main() {
  local quick=0 long=0 coverage=0 preset=tests without='^(gpu|long)$' argument rest=() presets
  for argument in "$@"; do
    case $argument in
      -h | --help) usage; exit 0 ;;
      --quick) quick=1 ;;
      --long) long=1 ;;
      --coverage) coverage=1 ;;
      *) rest+=("$argument") ;;
    esac
  done
  ((quick + long + coverage < 2)) || die 2 '--quick, --long and --coverage are mutually exclusive'
  set -- "${rest[@]}"
  local started=$SECONDS
  if ((long)); then
    say 'building and testing all cases takes far longer than a short run'
    export LONG_TESTS=1
    without='^gpu$'
  else
    say 'building and testing take about 15 minutes on two cores in a fresh clone; --quick skips ThreadSanitizer'
  fi
  feedrate_setup tests
  if ((coverage)); then
    locked install_coverage
    find "$FEEDRATE_ROOT/build/coverage" \( -name '*.gcda' -o -name 'python.coverage*' \) -delete 2>/dev/null || true
    preset=coverage
    set -- -E RingModel "$@"   # runs the same lines millions of times, which takes many minutes with coverage counters
  elif ((long)) || has_gpu; then
    preset=release
  fi
  mkdir -p "$results"
  presets=("$preset")
  ((quick || coverage)) || presets+=(tsan)
  locked configure_all "${presets[@]}"
  test_all "$preset" "$without" "$@"
  if ((coverage)); then
    report_coverage
  elif ((quick)); then
    notes+=('ThreadSanitizer: skipped by --quick')
  else
    test_tsan "$without" "$@"
  fi
  ((long)) || notes+=('left out: the additional cases of --long')
  summary "took $((SECONDS - started)) s"
  if ((passed + failed == 0)); then die 1 'no test ran'; fi
  ((failed == 0))
}

main "$@"
