#!/usr/bin/env bash
# Fuzzes the parser of foreign messages with libFuzzer under AddressSanitizer; needs clang. New inputs that reach new code
# join the corpus: tests/fuzz/run.sh [SECONDS], default 600.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
seconds=${1:-600}
if [[ ! $seconds =~ ^[1-9][0-9]*$ ]]; then
  echo "SECONDS: '$seconds' is not possible; allowed: a whole number above 0" >&2
  exit 2
fi
compiler=$(command -v clang++ || command -v clang++-14 || true)
if [[ -z $compiler ]]; then
  echo "needs clang++ (Debian's package clang)" >&2
  exit 2
fi
mkdir -p "$root/build/fuzz"
"$compiler" -std=c++20 -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined -I "$root" \
  -I "$root/.deps/usr/include" -DFMT_HEADER_ONLY=1 -DSPDLOG_FMT_EXTERNAL "$root/tests/fuzz/tasks_fuzz.cpp" \
  -o "$root/build/fuzz/tasks_fuzz"
exec "$root/build/fuzz/tasks_fuzz" -max_total_time="$seconds" -max_len=4096 -print_final_stats=1 \
  "$root/tests/fuzz/corpus/tasks"
