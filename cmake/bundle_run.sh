#!/usr/bin/env bash
# Runs Feedrate from an unpacked bundle, without installation, network or root access.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

usage() {
  cat <<'TEXT'
Usage: ./run COMMAND [ARGUMENTS]

  test [LABEL…] [--gtest_…]   runs all test executables, or those with one of the labels cli, gpu, redis
  sweep [SPEC] [OPTIONS]      runs a sweep (default: quick) and, if python3 has the required packages, makes its report;
                              results go to results/ in this folder unless --out names another one
  micro [OPTIONS]             runs the micro-benchmarks
  report DIR…                 makes the report of results
  feedrate [ARGUMENTS]        runs the executable
TEXT
}

export FEEDRATE_REDIS_SERVER=${FEEDRATE_REDIS_SERVER:-$here/redis/redis-server}
export FEEDRATE_SOURCE_DIR=$here FEEDRATE_SPECS=${FEEDRATE_SPECS:-$here/experiments/specs}
export FEEDRATE_EXECUTABLE=$here/bin/feedrate
# If the host's C library is older than the build machine's, use the bundle's. The check uses an empty environment,
# because a rejected variable would look like an old library.
env -i "$FEEDRATE_EXECUTABLE" --version >/dev/null 2>&1 || FEEDRATE_EXECUTABLE=$here/redis/feedrate

start() {   # start EXECUTABLE ARGUMENT…
  local program=$here/bin/$1 loader
  shift
  if [[ $FEEDRATE_EXECUTABLE == "$here/bin/feedrate" ]]; then
    LD_LIBRARY_PATH=$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} "$program" "$@"
  else
    loader=$(echo "$here"/redis/lib/ld-linux*)
    "$loader" --library-path "$here/redis/lib:$here/lib" "$program" "$@"
  fi
}

has_gpu() {
  if command -v nvidia-smi >/dev/null; then nvidia-smi -L 2>/dev/null | grep -q '^GPU'; else compgen -G '/dev/nvidia[0-9]*' >/dev/null; fi
}

run_tests() {
  local wanted=() arguments=() labels program label fits status=0 passed=0 failed=0 skipped=0 ran f s xml
  xml=$(mktemp)
  # shellcheck disable=SC2064  # expand the name now
  trap "rm -f '$xml'" EXIT
  for label in "$@"; do
    if [[ $label == -* ]]; then arguments+=("$label"); else wanted+=("$label"); fi
  done
  while read -r labels program; do
    fits=$((${#wanted[@]} == 0))
    for label in "${wanted[@]}"; do [[ ,$labels, != *",$label,"* ]] || fits=1; done
    ((fits)) || continue
    if [[ $labels == gpu ]] && ! has_gpu; then
      printf '== %s skipped: this machine has no GPU\n' "$program"
      skipped=$((skipped + 1))
      continue
    fi
    printf '== %s (%s)\n' "$program" "$labels"
    status=0 f=0
    : >"$xml"
    start "$program" --gtest_brief=1 --gtest_output="xml:$xml" "${arguments[@]}" </dev/null || status=$?
    ran=$(grep -c '<testcase .*status="run"' "$xml" || true)
    s=$(grep -c '<testcase .*result="skipped"' "$xml" || true)
    if ((ran)); then f=$(sed -n '0,/<testsuites/s/.*<testsuites [^>]*failures="\([0-9]*\)".*/\1/p' "$xml"); fi
    if ((status != 0 && f == 0)); then   # it crashed, so the number of tests that ran is unknown
      echo "$program exited with code $status"
      f=1 ran=$((ran + 1))
    fi
    passed=$((passed + ran - f - s)) failed=$((failed + f)) skipped=$((skipped + s))
  done <"$here/tests/executables.txt"
  printf '%s passed, %s failed, %s skipped\n' "$passed" "$failed" "$skipped"
  ((failed == 0 && passed > 0))
}

command=${1:-}
shift || true
case $command in
  test) run_tests "$@" ;;
  sweep)
    printf -v called '%q' "$0"
    export FEEDRATE_RESUME_WITH="$called sweep"   # the command that an interrupted sweep prints
    exec bash "$here/experiments/run_experiment.sh" "$@"
    ;;
  micro)
    for program in "$here"/bin/*micro*; do start "$(basename "$program")" "$@"; done
    ;;
  report)
    if ! lacking=$(PYTHONPATH=$here python3 -m analysis needs) && [[ -n $lacking ]]; then
      echo "no report: python3 here lacks ${lacking//$'\n'/, } (pip install --user ${lacking//$'\n'/ })" >&2
      exit 1
    fi
    PYTHONPATH=$here exec python3 -m analysis report "$@"
    ;;
  feedrate) exec "$FEEDRATE_EXECUTABLE" "$@" ;;
  -h | --help) usage ;;
  *)
    usage >&2
    exit 2
    ;;
esac
