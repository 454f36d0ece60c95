#!/usr/bin/env bash
# Measures one spec in separate runs of one executable, for two sides in the order a1 b1 b2 a2 a3 b3 …, so that drift
# affects both sides equally.
#   FEEDRATE=build/release/bin/feedrate tests/trials/separate_runs.sh OUT RUNS-PER-SIDE [options of sweep…]
set -euo pipefail
(($# >= 2)) || { echo "usage: $0 OUT RUNS-PER-SIDE [options of sweep…]" >&2; exit 2; }
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
out=$1 runs=$2
shift 2
for ((run = 1; run <= runs; ++run)); do
  sides=(a b)
  ((run % 2)) || sides=(b a)
  for side in "${sides[@]}"; do
    "${FEEDRATE:-feedrate}" sweep "$here/separate_runs.json" --seed "$run" --repetitions 3 --out "$out/$side$run" "$@"
  done
done
