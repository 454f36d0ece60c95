#!/usr/bin/env bash
# Runs two executables alternately at the same points, to show whether a code change affects performance:
#   tests/trials/alternate.sh OLD NEW OUTPUT-FOLDER [TURNS]      (TRIAL_DEVICE=cpu tests only the script itself)
# Each executable writes one row per turn and point to OUTPUT-FOLDER/old.jsonl or new.jsonl; the executable that runs
# first changes from turn to turn. tests/trials/alternate.py compares the rows in pairs.
set -uo pipefail
(($# > 2)) || { echo "usage: $0 OLD NEW OUTPUT-FOLDER [TURNS]" >&2; exit 2; }
declare -A executable=([old]=$1 [new]=$2)
out=$3 turns=${4:-10}
mkdir -p "$out"
points=(
  "--queue gpu_ring --payload 64 --batch 256 --window 16384 --producers 6 --lanes 96 --pollers 4"
  "--queue gpu_ring --payload 64 --window 1"
  "--queue host_polled --transfer pinned --payload 1Mi --batch 4 --window 16 --producers 4"
  "--experiment overlap --strategy ring --pipeline copy_process_copy"
  "--experiment handoff --way store --bytes 64Mi"
)
device=${TRIAL_DEVICE:-auto}
for ((turn = 0; turn < turns; ++turn)); do
  for point in "${points[@]}"; do
    order=(old new)
    ((turn % 2)) && order=(new old)
    for which in "${order[@]}"; do
      # shellcheck disable=SC2086  # a point expands to several words
      "${executable[$which]}" run $point --device "$device" --seconds 0.4 --warmup 0.2 --no-stages --json --keep-disturbed \
        >>"$out/$which.jsonl" 2>>"$out/$which.log"
    done
  done
done
