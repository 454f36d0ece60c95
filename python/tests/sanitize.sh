#!/usr/bin/env bash
# Runs the ring's tests over an extension that is built with a sanitizer, without CUDA:
#   python/tests/sanitize.sh thread|address[,undefined] [PYTEST ARGUMENTS]
# FEEDRATE_WHEEL_PYTHON: which python3, one with which the package can be built.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=python/tests/environment.sh
source "$root/python/tests/environment.sh"
(($# > 0)) || { echo "usage: $0 thread|address[,undefined] [PYTEST ARGUMENTS]" >&2; exit 2; }
sanitizer=$1
shift
python=${FEEDRATE_WHEEL_PYTHON:-python3}
work=$root/build/python/sanitized-${sanitizer//,/-}
case $sanitizer in
  thread) libraries=(tsan) ;;
  address | address,undefined) libraries=(asan stdc++) ;;   # libasan looks for the C++ library's throw when it begins
  *) echo "$0: $sanitizer is not possible; allowed: thread, address, address,undefined" >&2; exit 2 ;;
esac
mkdir -p "$work"
rm -rf "$work/wheels" "$work/venv" "$work/tests"
# The executable is not what is looked at, but a wheel holds one. A debug build keeps its symbols.
build_wheel "$python" -w "$work/wheels" --config-settings=build-dir="$work/build" \
  --config-settings=cmake.build-type=Debug \
  --config-settings=cmake.define.FEEDRATE_CUDA=OFF --config-settings=cmake.define.FEEDRATE_EXECUTABLE=/bin/true \
  --config-settings=cmake.define.CMAKE_CXX_FLAGS="-fsanitize=$sanitizer -fno-omit-frame-pointer -O1 -g1"
make_environment "$python" "$work/venv" "$(echo "$work"/wheels/*.whl)[redis,test]"
cp -r "$root/python/tests" "$work/"
cd "$work/tests"
unset PYTHONPATH "${!FEEDRATE_WHEEL@}"
preloaded=
for library in "${libraries[@]}"; do preloaded+=$(g++ -print-file-name="lib$library.so"):; done
# Python itself leaves memory at its end, and forks while threads run.
export LD_PRELOAD=${preloaded%:} ASAN_OPTIONS=detect_leaks=0 TSAN_OPTIONS="die_after_fork=0 halt_on_error=1 exitcode=66"
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
# The sanitizers slow all down: tests of times are left out.
exec "$work/venv/bin/python" -m pytest -k "not within_100_ms" -q -p no:cacheprovider "$@" test_ring.py test_gpuqueue.py test_tensor_ring.py
