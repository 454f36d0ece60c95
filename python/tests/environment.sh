# shellcheck shell=bash
# Sourced by run.sh and sanitize.sh: the environments that the tests run in.

# PyPI may fail for a moment. pip tries a connection again, also for what a build needs, which only variables reach.
export PIP_RETRIES=5 PIP_TIMEOUT=30 PIP_DISABLE_PIP_VERSION_CHECK=1

# make_environment PYTHON FOLDER REQUIREMENT…: without a pip of its own, and without bytecode, of which the tests would
# use a tenth. A download that broke off fails, and is not what pip tries again.
make_environment() {
  local python=$1 folder=$2 try
  shift 2
  "$python" -m venv --without-pip "$folder"
  for try in 1 2 3; do
    if "$python" -m pip --python "$folder/bin/python" install -q --no-compile "$@"; then return; fi
    echo "pip failed, try $try of 3" >&2
    ((try == 3)) || sleep 5
  done
  return 1
}
