# shellcheck shell=bash
# Functions that build the wheel and the test environments. run.sh and sanitize.sh set `root` and source this file.

# PyPI may fail temporarily, so pip retries connections. Unlike options, variables also affect the downloads of a build.
export PIP_RETRIES=5 PIP_TIMEOUT=30 PIP_DISABLE_PIP_VERSION_CHECK=1

# make_environment PYTHON FOLDER REQUIREMENT…: creates an environment without its own pip and without bytecode (the
# tests would use only a tenth of it). pip does not retry interrupted downloads, so the function does.
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

# build_wheel PYTHON ARGUMENT…: builds the wheel; the arguments are passed to `pip wheel`. With
# FEEDRATE_WHEEL_SDIST=FOLDER, it first creates a source distribution there and builds the wheel from it. The build
# requirements of pyproject.toml are in a permanent environment: pip's own environment has a new path each time, so
# everything would be compiled again.
build_wheel() {
  local python=$1 needed tools source=$root
  shift
  mapfile -t needed < <("$python" -c 'import sys, tomllib
with open(sys.argv[1], "rb") as file: print(*tomllib.load(file)["build-system"]["requires"], sep="\n")' "$root/pyproject.toml")
  tools=$root/build/python/tools-$("$python" -c 'import sysconfig; print(sysconfig.get_config_var("SOABI"))')
  make_environment "$python" "$tools" "${needed[@]}"
  if [[ -n ${FEEDRATE_WHEEL_SDIST:-} ]]; then
    mkdir -p "$FEEDRATE_WHEEL_SDIST"
    source=$FEEDRATE_WHEEL_SDIST/$(cd "$root" && "$tools/bin/python" -c 'import sys
from scikit_build_core.build import build_sdist
print(build_sdist(sys.argv[1]))' "$FEEDRATE_WHEEL_SDIST" | tail -1)
  fi
  "$python" -m pip --python "$tools/bin/python" wheel "$source" --no-build-isolation --no-deps -q "$@"
}
