#!/usr/bin/env bash
# A worker and its client, which can be written in any language with access to Redis: starts a Redis server and
# `feedrate worker`, sends one message, prints and checks the answer, and stops both.
#   tests/example/worker_client.sh [EXECUTABLE]      (default: build/release/bin/feedrate)
# Needs redis-server and redis-cli. Exits with 0 only if the answer is correct.
set -euo pipefail
feedrate=${1:-$(dirname "${BASH_SOURCE[0]}")/../../build/release/bin/feedrate}
place=$(mktemp -d)
answer=$place/answer
pids=()

stop() {   # stops the worker first, which finishes its tasks, and then the server
  local code=$? i
  trap - EXIT
  for ((i = ${#pids[@]} - 1; i >= 0; i--)); do
    kill "${pids[i]}" 2>/dev/null || true
    wait "${pids[i]}" || true
  done
  # A popped answer exists only in this file, so the file is kept if anything went wrong. Without an answer, redis-cli
  # prints only a newline.
  if ((code != 0)) && [[ -e $answer ]] && (($(wc -c <"$answer") > 1)); then
    echo "the answer is kept in $answer" >&2
  else
    rm -rf "$place"
  fi
  exit "$code"
}
trap stop EXIT

redis() { redis-cli -s "$place/redis.sock" "$@"; }
bytes() { od -An -v -tx1 "$@" | tr -d '\n'; }   # in hex: ` 01 00 00 00`

server=${FEEDRATE_REDIS_SERVER:-redis-server}
"$server" --port 0 --unixsocket "$place/redis.sock" --dir "$place" --save '' >"$place/server.log" &
pids+=($!)
for ((i = 0; i < 100; i++)); do
  if redis ping >/dev/null 2>&1; then break; fi
  sleep 0.1
done
url=unix://$place/redis.sock
"$feedrate" worker --queue redis_list --workload echo --payload 64 --redis "$url" >"$place/worker.log" 2>&1 &
pids+=($!)

# The id (the top 16 bits select the list for the answer: 7; the client chooses the other bits: 1), the payload length
# (4), the checksum (0 in a task) and the payload, all little-endian.
printf '\1\0\0\0\0\0\7\0' >"$place/task"
printf '\4\0\0\0\0\0\0\0' >>"$place/task"
printf '\0\0\0\0' >>"$place/task"
redis -x LPUSH feedrate:tasks <"$place/task" >/dev/null

# RPOP prints only the raw answer and a newline added by redis-cli; BRPOP would also print the name of the list.
for ((i = 0; i < 200; i++)); do
  if [[ $(redis LLEN feedrate:results:7) != 0 ]]; then break; fi
  sleep 0.05
done
redis RPOP feedrate:results:7 >"$answer"
if (($(wc -c <"$answer") < 21)); then
  echo "no answer within 10 s; log of the worker:" >&2
  cat "$place/worker.log" >&2
  exit 1
fi

echo "id      $(bytes -N 8 "$answer")"
echo "length  $(bytes -j 8 -N 4 "$answer")"
echo "checksum$(bytes -j 12 -N 4 "$answer")"
echo "payload $(bytes -j 16 -N 4 "$answer")"
# echo adds 1 to every word of the payload; the checksum is the sum of its words.
expected=' 01 00 00 00 00 00 07 00 04 00 00 00 01 00 00 00 01 00 00 00'
if [[ $(bytes -N 20 "$answer") != "$expected" ]]; then
  echo "the answer should be$expected" >&2
  exit 1
fi
