#!/usr/bin/env bash
# Tests whether two workers on two GPUs of one host serve a queue at twice the rate of one worker, on GPU-bound work:
#   tests/trials/two_workers.sh FEEDRATE ROWS.jsonl [ROUNDS]
# Each round measures one worker and then two workers, with a benchmark that runs no worker itself. The rows go to
# ROWS.jsonl; two_workers.py summarises them. Needs redis-server (FEEDRATE_REDIS_SERVER, or on the PATH) and two GPUs.
# With TWO_WORKERS_DEVICE=cpu both workers run on the CPU device, which tests only the script itself.
set -euo pipefail
(($# >= 2)) || { echo "usage: $0 FEEDRATE ROWS.jsonl [ROUNDS]" >&2; exit 2; }
feedrate=$1 rows=$2 rounds=${3:-5}
device=${TWO_WORKERS_DEVICE:-cuda} server=${FEEDRATE_REDIS_SERVER:-redis-server}
# With a long chain, each batch keeps a kernel busy for milliseconds, and batches run one after another. The GPU is
# therefore the bound, and the host is mostly idle.
work=(--queue redis_reliable --transfer mapped --streams 1 --workload fma_chain --payload 64 --batch 4
  --flops-per-byte "${TWO_WORKERS_FLOPS:-65536}")
folder=$(mktemp -d)
"$server" --port 0 --unixsocket "$folder/redis.sock" --save '' >"$folder/redis.log" 2>&1 &
trap 'kill $(jobs -p) 2>/dev/null || true; wait; rm -rf "$folder"' EXIT
for ((i = 0; i < 100; ++i)); do [[ -S $folder/redis.sock ]] && break; sleep 0.1; done
url=unix://$folder/redis.sock
: >"$rows"

measure() {   # measure GPU…: runs one worker per GPU
  local workers=() gpu at
  for gpu in "$@"; do
    at=(--device cuda --gpu "$gpu")
    [[ $device == cpu ]] && at=(--device cpu)
    "$feedrate" worker --redis "$url" "${at[@]}" "${work[@]}" >>"$folder/worker.log" 2>&1 &
    workers+=($!)
  done
  sleep "${TWO_WORKERS_START:-3}"   # creating a context and loading a module takes a second or two
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
