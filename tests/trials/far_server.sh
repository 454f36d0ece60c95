#!/usr/bin/env bash
# Measures the cost of a Redis server reached over TCP from another network namespace, compared with a Unix socket:
#   tests/trials/far_server.sh FEEDRATE FOLDER [ROUNDS]
# Each round measures a Unix socket (near), TCP over a wire without delay (wire), and TCP with a delay of 0.1 ms each
# way, hence 0.2 ms per round trip (far). The rows go to FOLDER/{near,wire,far}.jsonl; far_server.py summarises them.
# Needs redis-server (FEEDRATE_REDIS_SERVER, or on the PATH), a C++ compiler, root and /dev/net/tun.
# FAR_SERVER_DEVICE=cpu tests only the script itself.
set -euo pipefail
(($# >= 2)) || { echo "usage: $0 FEEDRATE FOLDER [ROUNDS]" >&2; exit 2; }
feedrate=$(realpath "$1") rows=$2 rounds=${3:-3}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
server=${FEEDRATE_REDIS_SERVER:-redis-server} options="--save '' --protected-mode no"
folder=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; wait; rm -rf "$folder"' EXIT
c++ -std=c++20 -O2 -o "$folder/delayed_wire" "$here/delayed_wire.cpp" -pthread
mkdir -p "$rows"
sweep="'$feedrate' sweep '$here/far_server.json' --device ${FAR_SERVER_DEVICE:-cuda} --floor-rounds 1"

over_wire() {   # over_wire MICROSECONDS: runs a sweep into $folder/out
  "$folder/delayed_wire" "$1" "exec '$server' --bind 10.77.0.1 $options >>'$folder/redis.log'" \
    "sleep 0.5; exec $sweep --redis redis://10.77.0.1 --out '$folder/out'"
}
near() {
  rm -f "$folder/redis.sock"
  sh -c "exec '$server' --port 0 --unixsocket '$folder/redis.sock' $options >>'$folder/redis.log'" &
  local redis=$! status=0
  for ((i = 0; i < 100; ++i)); do [[ -S $folder/redis.sock ]] && break; sleep 0.1; done
  sh -c "exec $sweep --redis unix://$folder/redis.sock --out '$folder/out'" || status=$?
  kill $redis
  wait $redis || true
  return $status
}

for way in near wire far; do : >"$rows/$way.jsonl"; done
for ((round = 0; round < rounds; ++round)); do
  for way in near wire far; do
    rm -rf "$folder/out"
    case $way in near) near ;; wire) over_wire 0 ;; far) over_wire 100 ;; esac >>"$folder/sweep.log" 2>&1 || {
      cat "$folder/sweep.log" >&2
      exit 1
    }
    cat "$folder/out/rows.jsonl" >>"$rows/$way.jsonl"
  done
done
