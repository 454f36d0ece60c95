#!/usr/bin/env bash
# Everything that a change to device code must pass on a GPU, from an unpacked bundle: the gpu tests, short runs of every
# queue and transfer under compute-sanitizer's memcheck, and racecheck and synccheck of the launched kernels.
#   tests/gpu_check.sh [OUTPUT FOLDER]
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
out=${1:-$(mktemp -d)}
sanitizer=$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)
export FEEDRATE_REDIS_SERVER=${FEEDRATE_REDIS_SERVER:-$here/redis/redis-server}
mkdir -p "$out"
failed=0

check() {   # check NAME COMMAND…: runs it, shows the end of what it printed where it failed
  local name=$1 log=$out/$1.log
  shift
  if timeout 300 "$@" >"$log" 2>&1; then
    echo "passed  $name"
  else
    echo "FAILED  $name (exit $?)"
    tail -n 15 "$log"
    failed=$((failed + 1))
  fi
}

short=(run --device cuda --messages 300 --warmup 0 --window 16 --batch 8 --watchdog 120)
check gpu_tests "$here/run" test gpu
if [[ -x $sanitizer ]]; then
  for payload in 64 1000 20000; do
    check "memcheck-gpu_ring-$payload" "$sanitizer" --tool memcheck --error-exitcode 9 \
      "$here/bin/feedrate" "${short[@]}" --queue gpu_ring --payload $payload
    for transfer in pageable pinned mapped; do
      check "memcheck-$transfer-$payload" "$sanitizer" --tool memcheck --error-exitcode 9 \
        "$here/bin/feedrate" "${short[@]}" --queue host_polled --transfer $transfer --payload $payload
    done
    for tool in racecheck synccheck; do
      check "$tool-pinned-$payload" "$sanitizer" --tool $tool --error-exitcode 9 \
        "$here/bin/feedrate" "${short[@]}" --queue host_polled --transfer pinned --payload $payload
    done
  done
else
  echo "skipped compute-sanitizer: not installed here"
fi
echo "$failed failed; logs in $out"
exit $((failed != 0))
