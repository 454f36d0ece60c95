#!/usr/bin/env bash
# Runs the ring's tests on every newer Python version found on this machine, with a single wheel (3.12 and later use the
# stable ABI) built from a source distribution:
#   python/tests/versions.sh FEEDRATE-EXECUTABLE [PYTEST ARGUMENTS]
# Exit code 77: this machine has no such version.
set -euo pipefail
# The first version found builds the wheel, so each version must have headers and pip.
found=()
for version in 3.12 3.13; do
  for candidate in "python$version" "$HOME/.pyenv/versions/$version".*/bin/"python$version"; do
    # pyenv also has shims for versions that are not active, so each candidate is tried.
    "$candidate" -c 'import ensurepip, os, pip, sysconfig, venv
assert os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h"))' 2>/dev/null || continue
    found+=("$(command -v "$candidate")")
    break
  done
done
((${#found[@]} > 0)) || { echo 'no Python 3.12 or 3.13 with headers, pip and venv on this machine' >&2; exit 77; }
folder=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)/build/python/versions
export FEEDRATE_WHEEL_PYTHON="${found[*]}" FEEDRATE_WHEEL_FOLDER=versions FEEDRATE_WHEEL_SDIST=$folder/sdist
export FEEDRATE_WHEEL_TESTS='test_package.py test_buffers.py test_ring.py test_gpuqueue.py test_tensor_ring.py test_store.py'
export FEEDRATE_WHEEL_EXTRAS=harness,redis,test   # these tests compile no kernel
exec "$(dirname "${BASH_SOURCE[0]}")/run.sh" "$@"
