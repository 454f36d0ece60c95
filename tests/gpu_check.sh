#!/usr/bin/env bash
# Runs every check that a change to device code must pass on a GPU, from an unpacked bundle: the gpu tests, short runs
# of every queue and transfer under compute-sanitizer's memcheck, and racecheck and synccheck of the launched kernels.
#   tests/gpu_check.sh [OUTPUT FOLDER] [REGULAR EXPRESSION: run only the checks whose names match]
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
out=${1:-$(mktemp -d)}
only=${2:-.}
sanitizer=$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)
export FEEDRATE_REDIS_SERVER=${FEEDRATE_REDIS_SERVER:-$here/redis/redis-server}
mkdir -p "$out"
failed=0
ran=0

check() {   # check NAME COMMAND…: runs the command and, if it fails, shows the end of its output
  local name=$1 log=$out/$1.log
  shift
  [[ $name =~ $only ]] || return 0
  ran=$((ran + 1))
  if timeout 300 "$@" >"$log" 2>&1; then
    echo "passed  $name"
  else
    echo "FAILED  $name (exit $?)"
    tail -n 15 "$log"
    failed=$((failed + 1))
  fi
}

check_all() {   # like check, but also fails if a test was skipped
  check "$@"
  if [[ $1 =~ $only ]] && grep -q SKIPPED "$out/$1.log"; then
    echo "FAILED  $1 (tests were skipped)"
    grep SKIPPED "$out/$1.log"
    failed=$((failed + 1))
  fi
}

# Limits are not measured, because that takes minutes under a sanitizer and these runs measure nothing.
brief=(run --device cuda --messages 300 --warmup 0 --window 64 --watchdog 120 --floor-rounds 0 --keep-disturbed)
short=("${brief[@]}" --batch 8)
check gpu_tests "$here/run" test gpu
# CUPTI must be the first user of the GPU in its process, and NVTX chooses its tool only once per process.
check_all traces "$here/run" test gpu \
  '--gtest_filter=ActivityOnGpu.*:GpuCellTimeline.*-ActivityOnGpu.RangesAreRecorded'
check_all ranges "$here/run" test gpu '--gtest_filter=ActivityOnGpu.RangesAreRecorded'
check ring_example "$here/bin/ring_example"
check counters bash -c '"$0" run --experiment kernels --rung coalesced --against alone --m 512 --n 512 --k 512 \
  --floor-rounds 0 --json | grep -q sm_l2_bytes' "$here/bin/feedrate_full"
# Two processes share one GPU: a resident kernel in one process must not block launches in the other, and vice versa.
check second-process bash -c '
  "$0" run --device cuda --queue gpu_ring --seconds 3 --watchdog 20 & ring=$!
  "$0" run --device cuda --queue host_polled --transfer pinned --seconds 2 --watchdog 20 && wait $ring' "$here/bin/feedrate"
if [[ -x $sanitizer ]]; then
  for tool in memcheck racecheck synccheck; do
    check "$tool-gpu_ring-64" "$sanitizer" --tool $tool --error-exitcode 9 \
      "$here/bin/feedrate" "${short[@]}" --queue gpu_ring --payload 64
    # Several teams of threads hand over messages in parallel.
    check "$tool-gpu_ring-pollers-64" "$sanitizer" --tool $tool --error-exitcode 9 \
      "$here/bin/feedrate" "${short[@]}" --queue gpu_ring --payload 64 --pollers 4 --block 256
    # With ready flags: several messages per poll, or one (--batch 1).
    for shape in "--block 256 --pollers 8 --mirrors 4" "--block 256 --pollers 2 --payload 1000" "--block 32 --pollers 1"; do
      for batch in 32 1; do
        # shellcheck disable=SC2086  # expands to several options
        check "$tool-gpu_ring-flags-$batch-${shape//[^0-9]/}" "$sanitizer" --tool $tool --error-exitcode 9 \
          "$here/bin/feedrate" "${brief[@]}" --batch $batch --queue gpu_ring --notify flags $shape
      done
    done
  done
  for payload in 64 1000 20000; do
    check "memcheck-gpu_ring-$payload" "$sanitizer" --tool memcheck --error-exitcode 9 \
      "$here/bin/feedrate" "${short[@]}" --queue gpu_ring --payload $payload
    for tool in memcheck racecheck; do
      check "$tool-gpu_ring-vram-$payload" "$sanitizer" --tool $tool --error-exitcode 9 \
        "$here/bin/feedrate" "${short[@]}" --queue gpu_ring --payload $payload --slots vram
      check "$tool-gpu_ring-teams-$payload" "$sanitizer" --tool $tool --error-exitcode 9 \
        "$here/bin/feedrate" "${short[@]}" --queue gpu_ring --payload $payload --pollers 4 --block 256 \
        --results as_finished
    done
    for transfer in pageable pinned mapped double_buffer ring_buffer graph batched_copy gather bulk_async stream_ordered; do
      check "memcheck-$transfer-$payload" "$sanitizer" --tool memcheck --error-exitcode 9 \
        "$here/bin/feedrate" "${short[@]}" --queue host_polled --transfer $transfer --payload $payload
    done
    for tool in racecheck synccheck; do
      for transfer in pinned gather bulk_async; do
        check "$tool-$transfer-$payload" "$sanitizer" --tool $tool --error-exitcode 9 \
          "$here/bin/feedrate" "${short[@]}" --queue host_polled --transfer $transfer --payload $payload
      done
    done
  done
  for strategy in serial two_stream ping_pong ring graph persistent pdl; do
    for tool in memcheck racecheck; do
      check "$tool-overlap-$strategy" "$sanitizer" --tool $tool --error-exitcode 9 "$here/bin/feedrate" run \
        --experiment overlap --device cuda --pipeline chain --strategy $strategy --item 64Ki --items 8 --cost-us 5 \
        --stage-blocks 4 --seconds 0.05 --floor-rounds 0 --keep-disturbed
    done
  done
  # Rungs of the ladders on ragged sizes. racecheck does not follow bulk copies.
  for tool in memcheck initcheck synccheck; do
    for group in Plain Bulk; do
      check "$tool-ladders-$group" "$sanitizer" --tool $tool --error-exitcode 9 "$here/bin/test_gpu" \
        "--gtest_filter=$group/GpuMatmul.SolvesEveryProblem/*:$group/GpuLinear.SolvesEveryPass/*"
    done
  done
  rungs=$("$here/bin/test_gpu" --gtest_list_tests \
    '--gtest_filter=Plain/GpuMatmul.SolvesEveryProblem/*:Plain/GpuLinear.SolvesEveryPass/*' |
    awk '/^[^ ]/ { suite = $1 } /^  / { print suite $1 }')
  check racecheck-ladders test -n "$rungs"
  for rung in $rungs; do   # all together take longer than the limit of a check
    check "racecheck-ladders-${rung//\//-}" env GTEST_FILTER="$rung" "$sanitizer" --tool racecheck --error-exitcode 9 \
      "$here/bin/test_gpu"
  done
else
  echo "skipped compute-sanitizer: not installed on this machine"
fi
((ran > 0)) || { echo "no check has a name that matches '$only'" >&2; exit 2; }
echo "$failed of $ran failed; logs in $out"
exit $((failed != 0))
