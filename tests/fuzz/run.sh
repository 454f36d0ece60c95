#!/usr/bin/env bash
# Fuzzes a parser of untrusted bytes with libFuzzer under AddressSanitizer; needs clang. It starts with the corpus in
# this folder and keeps inputs that reach new code in build/fuzz: tests/fuzz/run.sh [SECONDS [TARGET]], default: 600
# seconds of tasks. Targets: tasks (elements of Redis queues), requests (to a tensor store), npy (array files), safetensors
# (checkpoints), fio (its output), commands and completions (of queues that device threads and a controller in software share).
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
seconds=${1:-600} target=${2:-tasks}
if [[ ! $seconds =~ ^[1-9][0-9]*$ ]]; then
  echo "invalid value '$seconds' for SECONDS; allowed: a whole number above 0" >&2
  exit 2
fi
tensors=$root/libraries/tensors
libraries=()
case $target in
  tasks) sources=() ;;
  requests) sources=("$tensors"/{arena,board,memfd_memory,no_cuda,protocol,requests,table,tensor}.cpp) ;;
  npy) sources=("$root/experiments/cli/npy.cpp" "$tensors/tensor.cpp") ;;
  safetensors) sources=("$tensors"/{safetensors,tensor}.cpp) ;;
  fio) sources=("$root/experiments/storage/fio.cpp" "$root"/common/limits/*.cpp "$root"/common/{clock,units}.cpp) ;;
  completions) sources=("$root"/common/threads/*.cpp) ;;
  commands)
    sources=("$root"/libraries/storage/{files,uring}.cpp "$root"/variants/storage/ring_controller.cpp "$root"/common/device/{cpu_device,no_cuda}.cpp
      "$root"/common/threads/*.cpp "$root"/common/clock.cpp)
    libraries=(-luring)
    ;;
  *)
    echo "invalid value '$target' for TARGET; allowed: tasks, requests, npy, safetensors, fio, commands, completions" >&2
    exit 2
    ;;
esac
compiler=$(command -v clang++ || command -v clang++-14 || true)
if [[ -z $compiler ]]; then
  echo "clang++ is missing; install the Debian package clang" >&2
  exit 2
fi
mkdir -p "$root/build/fuzz/$target"
"$compiler" -std=c++20 -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined -I "$root" -I "$root/libraries/tensors/include" \
  -I "$root/.deps/usr/include" -DFMT_HEADER_ONLY=1 -DSPDLOG_FMT_EXTERNAL "$root/tests/fuzz/${target}_fuzz.cpp" \
  "${sources[@]}" "${libraries[@]}" -o "$root/build/fuzz/${target}_fuzz"
exec "$root/build/fuzz/${target}_fuzz" -max_total_time="$seconds" -max_len=4096 -print_final_stats=1 \
  "$root/build/fuzz/$target" "$root/tests/fuzz/corpus/$target"
