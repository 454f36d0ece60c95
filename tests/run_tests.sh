#!/usr/bin/env bash
# Installs what is missing, builds, and runs every test that fits this machine; see --help.
set -euo pipefail
# shellcheck source=experiments/setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/../experiments/setup.sh"

usage() {
  cat <<'TEXT'
Usage: tests/run_tests.sh [--quick] [CTEST ARGUMENTS]

Builds the presets release and tsan and runs their tests: release's labels cpu, redis and python, and gpu where there is
a GPU; then cpu and redis under ThreadSanitizer. Ends by naming what was skipped and why, and with the line
`N passed, N failed, N skipped`. Exit codes: 0 all passed, 1 something failed, 2 missing packages or bad arguments.

Takes about 40 minutes on two cores in a fresh clone, a fourth of it for building.

  --quick          without ThreadSanitizer
  CTEST ARGUMENTS  go to every ctest, for example: -R Histogram, -L cpu, --repeat until-fail:5
TEXT
}

passed=0 failed=0 skipped=0
notes=()     # what was left out, and why
failures=()
endings=()   # the last lines of what failed tests said, for whoever sees only the end of a log
results=$FEEDRATE_ROOT/build/test-results

# Prints, from ctest's JUnit file: `count PASSED FAILED SKIPPED`, then `fail NAME`, `said TEXT` (the last lines of what
# failed tests said) and `skip NUMBER REASON` lines.
read_results() {
  "$FEEDRATE_PYTHON" - "$1" <<'PYTHON'
import collections, re, sys, xml.etree.ElementTree as xml
LINES, TESTS = 30, 10   # of a test, and of how many, so that a broken machine does not fill the log
passed, failed, reasons = 0, [], collections.Counter()
for case in xml.parse(sys.argv[1]).getroot().iter("testcase"):
    skipped = case.find("skipped")
    message = skipped.get("message", "") if skipped is not None else ""
    if case.get("status") == "run":
        passed += 1
    elif case.get("status") == "disabled" or message.startswith("SKIP_"):
        # GoogleTest prints "file:line: Skipped" and on the next line the reason.
        said = re.search(r": Skipped\n+(.+)", case.findtext("system-out") or "")
        reasons[said[1].strip() if said else message or "disabled"] += 1
    else:   # "not run" for any other reason, such as an executable that was not built, is a failure too
        said = (case.findtext("system-out") or "").rstrip().splitlines()
        failed.append((f'{case.get("name")} {message}'.strip(), said[-LINES:]))
print("count", passed, len(failed), sum(reasons.values()))
for name, _ in failed:
    print("fail", name)
for name, said in [one for one in failed if one[1]][:TESTS]:
    print("said", f"-- the end of what {name} said:")
    for line in said:
        print("said |", line)
for reason, number in reasons.most_common():
    print("skip", number, reason)
PYTHON
}

# run_ctest NAME PRESET CTEST-ARGUMENT…: runs the tests, adds to the totals.
run_ctest() {
  local name=$1 preset=$2 junit=$results/$1.xml kind rest status=0 p=0 f=0 s=0
  shift 2
  printf '\n== %s\n' "$name"
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
    esac
  done < <(read_results "$junit")
  if ((status != 0 && f == 0)); then
    failed=$((failed + 1))
    failures+=("$name: ctest ended with exit code $status")
  fi
}

count_tests() { (cd "$FEEDRATE_ROOT" && ctest --preset release -N "$@" 2>/dev/null | sed -n 's/^Total Tests: *//p'); }

leave_out() {   # leave_out NUMBER WHAT WHY
  ((${1:-0} == 0)) && return
  skipped=$((skipped + $1))
  notes+=("$2: $1 skipped: $3")
}

test_release() {
  locked configure release
  locked build release
  run_ctest 'cpu, redis, python' release -LE '^gpu$' --no-tests=ignore --parallel "$(nproc)" "$@"
  if [[ -z $FEEDRATE_NVCC ]]; then
    notes+=('gpu: not built: no CUDA compiler')
  elif has_gpu; then
    run_ctest gpu release -L '^gpu$' --no-tests=ignore "$@"
  else
    leave_out "$(count_tests -L '^gpu$')" gpu 'this machine has no GPU'
  fi
}

# ThreadSanitizer of g++ 12 and 13 fails ("unexpected memory mapping") where the kernel randomises addresses by more than
# 28 bits, so it runs without randomisation where that may be switched off (containers may forbid it).
without_aslr() {
  local bits
  bits=$(cat /proc/sys/vm/mmap_rnd_bits 2>/dev/null || echo 0)
  if ((bits > 28)) && setarch "$(uname -m)" -R true 2>/dev/null; then FEEDRATE_WRAP=(setarch "$(uname -m)" -R); fi
}

test_tsan() {
  without_aslr
  locked configure tsan
  locked build tsan tsan_tests   # only what the tests below need
  run_ctest 'cpu, redis under ThreadSanitizer' tsan --no-tests=ignore --parallel "$(nproc)" "$@"
  FEEDRATE_WRAP=()
}

summary() {
  printf '\n== summary\n'
  printf '%s\n' "$@"
  ((${#notes[@]} == 0)) || printf '%s\n' "${notes[@]}"
  ((${#endings[@]} == 0)) || printf '%s\n' "${endings[@]}"
  ((${#failures[@]} == 0)) || printf 'FAILED %s\n' "${failures[@]}"
  printf '%s passed, %s failed, %s skipped\n' "$passed" "$failed" "$skipped"
}

main() {
  local quick=0 argument rest=()
  for argument in "$@"; do
    case $argument in
      -h | --help) usage; exit 0 ;;
      --quick) quick=1 ;;
      *) rest+=("$argument") ;;
    esac
  done
  set -- "${rest[@]}"
  local started=$SECONDS
  say 'building and testing take about 40 minutes on two cores in a fresh clone; --quick leaves out ThreadSanitizer'
  feedrate_setup tests
  mkdir -p "$results"
  test_release "$@"
  if ((quick)); then notes+=('ThreadSanitizer: left out by --quick'); else test_tsan "$@"; fi
  summary "took $((SECONDS - started)) s"
  if ((passed + failed == 0)); then die 1 'no test ran'; fi
  ((failed == 0))
}

main "$@"
