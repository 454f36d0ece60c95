#!/usr/bin/env bash
# Whether two workers on two GPUs of one host share a queue at twice one worker's rate, on work that bounds the GPU:
#   tests/trials/two_workers.sh FEEDRATE ROWS.jsonl [ROUNDS]
# By turns: one worker, two workers, each measured by a benchmark that has none of its own. The rows go to ROWS.jsonl.
# two_workers.py says what they give. Needs redis-server (FEEDRATE_REDIS_SERVER, or on the PATH) and two GPUs; with
# TWO_WORKERS_DEVICE=cpu both workers are on the CPU device, which shows that this script works and nothing else.
set -euo pipefail
(($# >= 2)) || { echo "usage: $0 FEEDRATE ROWS.jsonl [ROUNDS]" >&2; exit 2; }
feedrate=$1 rows=$2 rounds=${3:-5}
device=${TWO_WORKERS_DEVICE:-cuda} server=${FEEDRATE_REDIS_SERVER:-redis-server}
# A chain so long that a batch keeps a kernel busy for milliseconds, one batch after the other: the GPU is the bound, and
# the host has nothing to do meanwhile.
work=(--queue redis_reliable --transfer mapped --streams 1 --workload fma_chain --payload 64 --batch 4
  --flops-per-byte "${TWO_WORKERS_FLOPS:-65536}")
folder=$(mktemp -d)
"$server" --port 0 --unixsocket "$folder/redis.sock" --save '' >"$folder/redis.log" 2>&1 &
trap 'kill $(jobs -p) 2>/dev/null || true; wait; rm -rf "$folder"' EXIT
for ((i = 0; i < 100; ++i)); do [[ -S $folder/redis.sock ]] && break; sleep 0.1; done
url=unix://$folder/redis.sock
: >"$rows"

measure() {   # measure GPU…: a worker on each
  local workers=() gpu at
  for gpu in "$@"; do
    at=(--device cuda --gpu "$gpu")
    [[ $device == cpu ]] && at=(--device cpu)
    "$feedrate" worker --redis "$url" "${at[@]}" "${work[@]}" >>"$folder/worker.log" 2>&1 &
    workers+=($!)
  done
  sleep "${TWO_WORKERS_START:-3}"   # a context and a module take a second or two
  "$feedrate" run --redis "$url" --external-worker --device "$device" "${work[@]}" --producers 2 --window 32 \
    --seconds "${TWO_WORKERS_SECONDS:-2}" --json >"$folder/rows.jsonl" || { cat "$folder/worker.log" >&2; exit 1; }
  cat "$folder/rows.jsonl" >>"$rows"
  kill "${workers[@]}"
  wait "${workers[@]}" || true
}

for ((round = 0; round < rounds; ++round)); do
  measure 0
  measure 0 1
done
"$(dirname "$0")/two_workers.py" "$rows"
