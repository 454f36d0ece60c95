#!/usr/bin/env bash
# Installs what Feedrate needs and is not there yet; a second run finds everything and touches neither disk nor network.
# Run it (`experiments/setup.sh`) or source it: experiments/run_experiment.sh and tests/run_tests.sh use its functions.
#
# Exit code 2: something is missing that only root may install (it is named). 1: an installation failed (its log is named).
# FEEDRATE_CUDA=OFF skips the CUDA toolkit.
set -euo pipefail

FEEDRATE_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
FEEDRATE_LOGS=$FEEDRATE_ROOT/build/logs
FEEDRATE_PYTHON=$FEEDRATE_ROOT/.venv/bin/python   # after feedrate_setup: the Python that has requirements.txt
FEEDRATE_NVCC=''                                  # after feedrate_setup: the CUDA compiler, empty for a CPU-only build

say() { printf 'feedrate: %s\n' "$*" >&2; }
die() { local code=$1; shift; say "$*"; exit "$code"; }
have() { command -v "$1" >/dev/null 2>&1; }
at_least() { [[ $(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n1) == "$2" ]]; }   # version $1 >= $2
hash_of() { cat -- "$@" | sha256sum | cut -c1-16; }   # of the content: a moved clone keeps its stamps

# Runs a command with its output in a log, and shows the log's end only when it fails (FEEDRATE_TAIL lines of it).
logged() {
  local log=$FEEDRATE_LOGS/$1.log rc=0
  shift
  mkdir -p "$FEEDRATE_LOGS"
  { printf '+'; printf ' %q' "$@"; printf '\n'; "$@"; } >"$log" 2>&1 || rc=$?
  ((rc == 0)) && return
  tail -n "${FEEDRATE_TAIL:-40}" "$log" >&2
  say "failed (exit $rc): $1; the whole log: $log"
  return "$rc"
}

# ---------------------------------------------------------------------------------------------- Debian packages

# What is needed is probed for, not the package's name: a CMake or a header installed in another way counts as well.
missing_tools() {
  have g++ && at_least "$(g++ -dumpfullversion)" 12 || echo g++
  have cmake && at_least "$(cmake --version | sed -n '1s/[^0-9]*//p')" 3.25 || echo cmake
  have ninja || echo ninja-build
  have git || echo git
  have pkg-config || echo pkg-config
  have redis-server || echo redis-server
  [[ -e /etc/ssl/certs/ca-certificates.crt || -n ${SSL_CERT_FILE:-} || ! -x /usr/bin/apt-get ]] || echo ca-certificates
}

# Package and header, one pair a line.
FEEDRATE_HEADERS='libhiredis-dev hiredis/hiredis.h
libbenchmark-dev benchmark/benchmark.h
libgtest-dev gtest/gtest.h
libgmock-dev gmock/gmock.h
nlohmann-json3-dev nlohmann/json.hpp
libcli11-dev CLI/CLI.hpp
libspdlog-dev spdlog/spdlog.h
libfmt-dev fmt/format.h
libvalijson-dev valijson/validator.hpp'

missing_headers() {
  local package header
  if ! have g++; then
    cut -d' ' -f1 <<<"$FEEDRATE_HEADERS"
    return
  fi
  while read -r package header; do   # one run of the preprocessor answers for all
    printf '#if !__has_include(<%s>)\nmissing %s\n#endif\n' "$header" "$package"
  done <<<"$FEEDRATE_HEADERS" | g++ -E -P -x c++ - | sed -n 's/^missing //p' | tr -d ' '
}

missing_python() {
  python_ready && return
  if ! have python3; then
    printf '%s\n' python3 python3-venv
  elif ! python3 -c 'import venv, ensurepip' 2>/dev/null && ! system_python_suffices; then
    echo python3-venv
  fi
}

install_packages() {
  local missing sudo='' command
  missing=$(missing_tools; missing_headers; missing_python)
  missing=${missing//$'\n'/ }
  [[ -z $missing ]] && return
  command="apt-get install -y --no-install-recommends $missing"
  have apt-get || die 2 "needs what Debian and Ubuntu call: $missing. There is no apt-get here: install them in this system's way."
  if ((EUID != 0)); then
    # Asking for a password is fine at a terminal, and would hang anywhere else.
    if have sudo && { sudo -n true 2>/dev/null || [[ -t 0 && -t 2 ]]; }; then
      sudo=sudo
    else
      die 2 "not root and no sudo, and these packages are missing: $missing
feedrate: as root run: apt-get update && $command"
    fi
  fi
  say "installing Debian packages: $missing"
  # shellcheck disable=SC2086  # package names and the optional sudo are words
  logged apt apt_install "$sudo" $missing || die 1 'apt-get could not install the packages above'
  missing=$(missing_tools; missing_headers; missing_python)
  [[ -z $missing ]] || die 1 "installed, yet still missing or too old: ${missing//$'\n'/ } (needs g++ >= 12, CMake >= 3.25)"
}

# In a subshell, so that its traps undo what must not outlive the installation. apt_install SUDO PACKAGE…
apt_install() (
  sudo=$1
  shift
  # dpkg insists on the sbin folders, which a user's PATH may lack.
  as_root=(${sudo:+"$sudo"} env DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 "PATH=/usr/local/sbin:/usr/sbin:/sbin:$PATH")
  apt=("${as_root[@]}" apt-get -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3)
  # Feedrate starts a private Redis of its own: the package must not leave a service running on this machine.
  # An administrator's own policy-rc.d, or a Redis that was here before, stays as it is.
  policy=/usr/sbin/policy-rc.d
  new_redis=0
  [[ " $* " == *' redis-server '* ]] && new_redis=1
  if ((new_redis)) && [[ ! -e $policy ]]; then
    trap '"${as_root[@]}" rm -f "$policy"' EXIT
    printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee "$policy" >/dev/null
    "${as_root[@]}" chmod 755 "$policy"
  fi
  "${apt[@]}" update || echo 'apt-get update failed; trying with the package lists that are here'
  "${apt[@]}" install -y --no-install-recommends "$@" || exit
  if ((new_redis)); then   # nor one that starts at the next boot
    if have systemctl; then "${as_root[@]}" systemctl disable redis-server.service || true; fi
    "${as_root[@]}" update-rc.d redis-server disable || true
  fi
)

# ---------------------------------------------------------------------------------------------- Python

python_stamp() { hash_of "$FEEDRATE_ROOT/requirements.txt"; }
python_ready() {
  local stamp=$FEEDRATE_ROOT/.venv/.feedrate-stamp
  [[ -x $FEEDRATE_PYTHON && -e $stamp && $(<"$stamp") == "$(python_stamp)" ]]
}

# Whether the system's own packages satisfy requirements.txt's lower bounds.
system_python_suffices() {
  python3 - "$FEEDRATE_ROOT/requirements.txt" 2>/dev/null <<'PYTHON'
import importlib, importlib.metadata, re, sys
numbers = lambda text: [int(n) for n in re.findall(r"\d+", text)[:2]]
for line in open(sys.argv[1]):
    if found := re.match(r"([\w-]+)>=([\d.]+)", line):
        importlib.import_module(found[1])
        if numbers(importlib.metadata.version(found[1])) < numbers(found[2]):
            sys.exit(1)
PYTHON
}

venv_from_pypi() {
  python3 -m venv --clear "$FEEDRATE_ROOT/.venv" &&
    "$FEEDRATE_PYTHON" -m pip install --disable-pip-version-check --no-input --retries 3 --timeout 20 \
      -r "$FEEDRATE_ROOT/requirements.txt"
}

venv_from_system() {
  system_python_suffices && python3 -m venv --clear --system-site-packages --without-pip "$FEEDRATE_ROOT/.venv"
}

install_python() {
  python_ready && return
  say 'installing Python packages from PyPI into .venv'
  if ! FEEDRATE_TAIL=8 logged python venv_from_pypi; then
    logged python-system venv_from_system ||
      die 1 "the Python packages of requirements.txt could not be installed, and the system's python3 lacks some of them"
    say "PyPI did not serve them; using the system's own Python packages"
  fi
  python_stamp >"$FEEDRATE_ROOT/.venv/.feedrate-stamp"
}

# ---------------------------------------------------------------------------------------------- CUDA

nvcc_version() { "$1" --version 2>/dev/null | sed -n 's/.*release \([0-9.]*\).*/\1/p'; }

# The compiler CMake shall use: PATH, then the usual folder, then what was unpacked into .cuda/. 12.0 is the first with C++20.
# It is named by its toolkit's real folder: wrappers and links to one toolkit must not look like a change of compiler.
find_nvcc() {
  local nvcc top
  for nvcc in "${CUDACXX:-}" "$(command -v nvcc || true)" /usr/local/cuda/bin/nvcc "$FEEDRATE_ROOT/.cuda/bin/nvcc"; do
    [[ -n $nvcc && -x $nvcc ]] || continue
    at_least "$(nvcc_version "$nvcc")" 12.0 || continue
    top=$("$nvcc" --dryrun -E -x cu /dev/null 2>&1 | sed -n 's/^#\$ TOP=//p')
    [[ -n $top && -x $top/bin/nvcc ]] && nvcc=$(realpath "$top/bin/nvcc")
    echo "$nvcc"
    return
  done
  return 1
}

cuda_stamp() { hash_of "$FEEDRATE_ROOT/cmake/cuda-pypi.txt"; }

# The wheels share one folder, nvidia/cu13, shaped like a toolkit but for a few names that nvcc, CMake and the linker expect.
cuda_from_pypi() {
  local new=$FEEDRATE_ROOT/.cuda.new kit library
  rm -rf "$new"
  "$FEEDRATE_PYTHON" -m pip install --disable-pip-version-check --no-input --retries 3 --timeout 20 --no-compile --no-deps \
    --only-binary=:all: --target "$new" -r "$FEEDRATE_ROOT/cmake/cuda-pypi.txt" || return
  kit=$new/nvidia/cu13
  [[ -d $kit/lib64 ]] || ln -s lib "$kit/lib64"
  for library in "$kit"/lib/*.so.*; do
    [[ -e ${library%.so.*}.so ]] || ln -s "${library##*/}" "${library%.so.*}.so"
  done
  # CMake and nvcc name the parts by these paths; links keep the folder's inside (nvcc.profile's TOP) as it was.
  for library in bin include lib lib64 nvvm; do ln -s "nvidia/cu13/$library" "$new/$library"; done
  "$new/bin/nvcc" --version || return
}

install_cuda() {
  [[ ${FEEDRATE_CUDA:-AUTO} == OFF ]] && return
  FEEDRATE_NVCC=$(find_nvcc) && return
  local folder=$FEEDRATE_ROOT/.cuda
  if [[ ! -e $folder/.feedrate-stamp || $(<"$folder/.feedrate-stamp") != "$(cuda_stamp)" ]]; then
    say 'no nvcc here: fetching the CUDA 13 compiler and runtime from PyPI into .cuda'
    if FEEDRATE_TAIL=8 logged cuda cuda_from_pypi; then
      rm -rf "$folder"
      mv "$folder.new" "$folder"
    else
      # Remembered, so that the next run does not ask again.
      rm -rf "$folder" "$folder.new"
      mkdir -p "$folder"
    fi
    cuda_stamp >"$folder/.feedrate-stamp"
  fi
  FEEDRATE_NVCC=$(find_nvcc) || say 'no CUDA toolkit, neither here nor from PyPI: a CPU-only build (remove .cuda to try again)'
}

# A GPU that this machine's driver shows; what a toolkit can compile for is another matter.
has_gpu() {
  if have nvidia-smi; then
    nvidia-smi -L 2>/dev/null | grep -q '^GPU'
  else
    compgen -G '/dev/nvidia[0-9]*' >/dev/null
  fi
}

# ---------------------------------------------------------------------------------------------- build

# Runs a function while no other Feedrate command installs or builds in this clone.
locked() {
  local lock
  mkdir -p "$FEEDRATE_LOGS"
  exec {lock}>"$FEEDRATE_LOGS/lock"
  flock "$lock"
  "$@"
  exec {lock}>&-
}

# configure PRESET [-DNAME=value…]: only when the toolkit, the preset or the options changed; Ninja itself notices the rest.
# FEEDRATE_ARCHITECTURES: the CUDA architectures of a folder that is not configured yet; one that is keeps its own.
configure() {
  local preset=$1 folder=$FEEDRATE_ROOT/build/$1 place key old=''
  shift
  place="$FEEDRATE_ROOT $FEEDRATE_NVCC"
  if [[ $preset == release || $preset == debug ]]; then
    [[ -z $FEEDRATE_NVCC ]] || set -- "$@" "-DCMAKE_CUDA_COMPILER=$FEEDRATE_NVCC"
    [[ -z ${FEEDRATE_CUDA:-} ]] || set -- "$@" "-DFEEDRATE_CUDA=$FEEDRATE_CUDA"
  fi
  [[ -z ${FEEDRATE_WERROR:-} ]] || set -- "$@" "-DFEEDRATE_WERROR=$FEEDRATE_WERROR"
  set -- "$@" "-DPython3_EXECUTABLE=$FEEDRATE_PYTHON"
  key=$(printf '%s\n' "$place" "$(hash_of "$FEEDRATE_ROOT/CMakePresets.json")" "$@")
  [[ ! -e $folder/.feedrate-key ]] || old=$(<"$folder/.feedrate-key")
  [[ -e $folder/build.ninja && $old == "$key" ]] && return
  if [[ -z $old ]]; then
    [[ -z ${FEEDRATE_ARCHITECTURES:-} ]] || set -- "$@" "-DCMAKE_CUDA_ARCHITECTURES=$FEEDRATE_ARCHITECTURES"
  elif [[ ${old%%$'\n'*} != "$place" ]]; then
    set -- --fresh "$@"   # the clone or the toolkit moved: nothing in the cache can be relied on
  fi
  say "configuring build/$preset"
  cd "$FEEDRATE_ROOT"
  logged "configure-$preset" cmake --preset "$preset" "$@" || exit 1
  cd "$OLDPWD"
  printf '%s\n' "$key" >"$folder/.feedrate-key"
}

# build PRESET [--target…]. FEEDRATE_WRAP, an array: a command to run the build under (tests list themselves in it).
FEEDRATE_WRAP=()
build() {
  local preset=$1 started=$SECONDS
  shift
  cd "$FEEDRATE_ROOT"
  # The step that records the git revision always runs, and is not worth a word.
  if [[ ! -x build/$preset/bin/feedrate ]] || (($(ninja -C "build/$preset" -n 2>/dev/null | wc -l) > 5)); then
    say "building build/$preset"
  fi
  logged "build-$preset" "${FEEDRATE_WRAP[@]}" cmake --build --preset "$preset" --parallel "$(nproc)" "$@" || exit 1
  cd "$OLDPWD"
  ((SECONDS - started < 5)) || say "built build/$preset in $((SECONDS - started)) s"
}

# ---------------------------------------------------------------------------------------------- all of it

install_everything() {
  install_packages
  install_python
  install_cuda
}

feedrate_setup() {
  # An empty environment has a PATH in bash, but none for its children.
  export PATH="${PATH:-/usr/local/bin:/usr/bin:/bin}" HOME="${HOME:-$FEEDRATE_ROOT/build}"
  locked install_everything
}

if [[ ${BASH_SOURCE[0]} == "$0" ]]; then
  feedrate_setup
  say "ready: Python $FEEDRATE_PYTHON, CUDA compiler ${FEEDRATE_NVCC:-none (CPU-only)}, GPU $(has_gpu && echo yes || echo no)"
fi
