#!/usr/bin/env bash
# Runs the tests of the ring with an extension that is built with a sanitizer and without CUDA:
#   python/tests/sanitize.sh thread|address[,undefined] [PYTEST ARGUMENTS]
# FEEDRATE_WHEEL_PYTHON: the python3 to use; it must be able to build the package.
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
  address | address,undefined) libraries=(asan stdc++) ;;   # libasan looks up throw in the C++ library at startup
  *) echo "$0: invalid sanitizer '$sanitizer'; allowed: thread, address, address,undefined" >&2; exit 2 ;;
esac
mkdir -p "$work"
rm -rf "$work/wheels" "$work/venv" "$work/tests"
# A wheel needs an executable, but these tests do not use it. A debug build keeps its symbols.
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
# Python itself leaks memory at exit, and it forks while threads are running.
export LD_PRELOAD=${preloaded%:} ASAN_OPTIONS=detect_leaks=0 TSAN_OPTIONS="die_after_fork=0 halt_on_error=1 exitcode=66"
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
# Sanitizers slow everything down, so the test of a time limit is excluded.
exec "$work/venv/bin/python" -m pytest -k "not within_100_ms" -q -p no:cacheprovider "$@" test_ring.py test_gpuqueue.py test_tensor_ring.py
