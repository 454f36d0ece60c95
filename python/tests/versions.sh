#!/usr/bin/env bash
# Runs the ring's tests on every later Python that this machine has, all with one wheel (the stable ABI, from 3.12 on),
# which is built of a source distribution:
#   python/tests/versions.sh FEEDRATE-EXECUTABLE [PYTEST ARGUMENTS]
# Exit code 77: there is none.
set -euo pipefail
# The first compiles, so each must have its headers and pip.
found=()
for version in 3.12 3.13; do
  for candidate in "python$version" "$HOME/.pyenv/versions/$version".*/bin/"python$version"; do
    # A shim of pyenv's is there for versions that it does not give.
    "$candidate" -c 'import ensurepip, os, pip, sysconfig, venv
assert os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h"))' 2>/dev/null || continue
    found+=("$(command -v "$candidate")")
    break
  done
done
((${#found[@]} > 0)) || { echo 'no Python 3.12 or 3.13 here' >&2; exit 77; }
folder=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)/build/python/versions
export FEEDRATE_WHEEL_PYTHON="${found[*]}" FEEDRATE_WHEEL_FOLDER=versions FEEDRATE_WHEEL_SDIST=$folder/sdist
export FEEDRATE_WHEEL_TESTS='test_package.py test_buffers.py test_ring.py test_gpuqueue.py test_tensor_ring.py test_store.py'
export FEEDRATE_WHEEL_EXTRAS=harness,redis,test   # these compile no kernel
exec "$(dirname "${BASH_SOURCE[0]}")/run.sh" "$@"
