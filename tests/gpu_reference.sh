#!/usr/bin/env bash
# Measures the reference rows on a GPU host, from an unpacked bundle. The parts run one after another, in the given
# order:
#   tests/gpu_reference.sh OUTPUT-FOLDER PART…
# Parts: check (the gpu tests, and memcheck of the workloads), delivery (workers on the GPU are killed, or their
# messages break the context), quick (twice, so that runs can be compared), launch, capacity, feeding, load, ring,
# one_pair, guarantees, transfers, overlap, handoff, store (the cost of its operations with each way of sharing GPU
# memory; then clients, daemon and Redis are killed under load, clients STORE_KILLS times), profiles (the same points
# recorded by nsys, if it is on the PATH, and by --trace). Rows are written to OUTPUT-FOLDER/<part>.jsonl.xz. A part
# that fails, or takes longer than PART_SECONDS, does not stop the other parts. PART_OPTIONS are passed to the sweeps.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
feedrate=$here/bin/feedrate
export FEEDRATE_REDIS_SERVER=${FEEDRATE_REDIS_SERVER:-$here/redis/redis-server} FEEDRATE_SPECS=$here/experiments/specs
sanitizer=$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)
(($# > 1)) || { echo "usage: $0 OUTPUT-FOLDER PART…" >&2; exit 2; }
out=$1
shift
mkdir -p "$out"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

part() {   # part NAME COMMAND…: runs the command, reports its duration and keeps its output
  local name=$1 started=$SECONDS status=0
  shift
  timeout -s INT "${PART_SECONDS:-600}" "$@" >"$out/$name.log" 2>&1 || status=$?
  echo "$name: exit $status, $((SECONDS - started)) s"
  ((status == 0)) || { failed=1; tail -n 12 "$out/$name.log"; }
}

keep() {   # keep NAME: keeps the rows, the spec and the catalogue of a sweep
  [[ -s $work/$1/rows.jsonl ]] && xz -2 -T0 -c "$work/$1/rows.jsonl" >"$out/$1.jsonl.xz"
  cp "$work/$1/spec.json" "$out/$1.spec.json"
  cp "$work/$1/catalogue.json" "$out/$1.catalogue.json"
}

await_socket() {   # await_socket SOCKET: waits until the socket exists, for at most ten seconds
  for ((i = 0; i < 100; ++i)); do [[ -S $1 ]] && return; sleep 0.1; done
}

for wanted in "$@"; do
  case $wanted in
    check)
      part gpu_tests "$here/run" test gpu
      for workload in vecadd fma_chain; do
        part memcheck_$workload "$sanitizer" --tool memcheck --error-exitcode 9 "$feedrate" run --device cuda \
          --messages 300 --warmup 0 --window 64 --batch 8 --watchdog 120 --workload $workload --queue gpu_ring
      done
      ;;
    delivery)
      FEEDRATE_TEST_DEVICE=cuda FEEDRATE_FAULTS=$out/faults.jsonl part delivery "$here/run" test cli \
        '--gtest_filter=*DeliveryTest.*:*AtLeastOnceTest.*:*FailoverTest.*'
      ;;
    quick)
      for run in quick_a quick_b; do
        part $run "$feedrate" sweep quick --device cuda --out "$work/$run"
        keep $run
        sed -n '/^Best/,$p' "$out/$run.log"
      done
      ;;
    launch)
      part launch "$feedrate" sweep launch --device cuda --out "$work/launch"
      keep launch
      part memcheck_launch "$sanitizer" --tool memcheck --error-exitcode 9 "$feedrate" run --experiment launch \
        --device cuda --seconds 0.02 --form graph --kernels 4 --streams 2
      ;;
    capacity)
      part capacity "$feedrate" capacity --device cuda --seconds 0.2 --seconds-each 0 --out "$work/capacity"
      keep capacity
      sed -n '/^Highest/,$p' "$out/capacity.log"
      ;;
    feeding)
      part feeding "$feedrate" sweep feeding --device cuda --repetitions 2 --seconds 0.15 --warmup 0.06 \
        --out "$work/feeding"
      keep feeding
      ;;
    load | ring | one_pair | guarantees | transfers | overlap | handoff)
      # shellcheck disable=SC2086  # expands to several options
      part "$wanted" "$feedrate" sweep "$wanted" --device cuda ${PART_OPTIONS:-} --out "$work/$wanted"
      keep "$wanted"
      ;;
    store)
      "$FEEDRATE_REDIS_SERVER" --port 0 --unixsocket "$work/redis.sock" --save '' >"$out/store_redis.log" 2>&1 &
      redis=$!
      mkdir -p "$out/store"
      revision=$("$feedrate" --version | grep -o 'revision [^,]*' | cut -d' ' -f2)   # a context cannot contain commas
      socket=$work/store.sock url=unix://$work/redis.sock
      await_socket "$work/redis.sock"
      for share in vmm pool legacy; do
        "$feedrate" store serve --socket "$socket" --device cuda --share $share --memory 2Gi \
          --redis "$url" 2>>"$out/store_serve.log" &
        store=$!
        await_socket "$socket"
        only=store_
        [[ $share == vmm ]] || only='store_(get|create_delete/)'
        FEEDRATE_STORE_SOCKET=$socket FEEDRATE_STORE_REDIS=$url part store_$share "$here/run" micro \
          "--benchmark_filter=$only" "--benchmark_context=revision=$revision" --benchmark_min_time=0.2 --benchmark_out_format=json \
          --benchmark_out="$out/store/$share.json"
        kill $store && wait $store
      done
      kill $redis
      FEEDRATE_TEST_DEVICE=cuda FEEDRATE_STORE_KILLS=${STORE_KILLS:-20} part store_soak \
        "$here/run" test cli '--gtest_filter=StoreSoak.*'
      grep -h 'a death is detected' "$out/store_soak.log"
      ;;
    profiles)
      overlap=(--experiment overlap --pipeline copy_process_copy --item 1Mi --items 32 --cost-us 60 --seconds 0.05)
      moved=(--queue host_polled --payload 64Ki --batch 1 --window 16 --messages 2000)
      points=(pinned "${moved[*]} --transfer pinned" graph "${moved[*]} --transfer graph"
        ring "${overlap[*]} --strategy ring" ping_pong "${overlap[*]} --strategy ping_pong"
        serial "${overlap[*]} --strategy serial")
      for ((i = 0; i < ${#points[@]}; i += 2)); do
        read -ra point <<<"${points[i + 1]}"
        part "trace_${points[i]}" "$feedrate" run --device cuda --floor-rounds 1 "${point[@]}" \
          --trace "$work/${points[i]}.json"
        xz -2 -T0 -c "$work/${points[i]}.json" >"$out/trace_${points[i]}.json.xz"
        if command -v nsys >/dev/null && [[ ${points[i]} != s* && ${points[i]} != ping* ]]; then
          part "nsys_${points[i]}" nsys profile --trace=cuda,nvtx --sample=none --cpuctxsw=none \
            --capture-range=cudaProfilerApi --capture-range-end=stop --output="$out/nsys_${points[i]}" \
            "$feedrate" run --device cuda --floor-rounds 1 --profile "${point[@]}"
        fi
      done
      ;;
    *) echo "unknown part: $wanted" >&2; exit 2 ;;
  esac
done
exit $failed
