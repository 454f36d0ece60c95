#!/usr/bin/env bash
# Installs the missing requirements of Feedrate; a second run finds everything and uses neither disk nor network.
# Run it (`experiments/setup.sh`; `experiments/setup.sh tests` also installs the requirements of the tests;
# `experiments/setup.sh python` installs the Python package into .venv) or source it: experiments/run_experiment.sh and
# tests/run_tests.sh use its functions.
#
# Exit code 2: a package is missing that only root may install (the message names it), or the clone is not writable.
# Exit code 1: an installation failed (the message names its log), or the disk is full.
# FEEDRATE_CUDA: OFF builds without CUDA, AUTO builds with CUDA if there is a compiler. If unset, CUDA is built if there
# is a GPU or for the tests.
set -euo pipefail

FEEDRATE_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
FEEDRATE_LOGS=$FEEDRATE_ROOT/build/logs
FEEDRATE_PYTHON=$FEEDRATE_ROOT/.venv/bin/python   # after feedrate_setup: the Python with the packages of requirements.txt
FEEDRATE_PURPOSE=measure                          # or `tests`, or `python`, which need more packages
FEEDRATE_NVCC=''                                  # after feedrate_setup: the CUDA compiler, empty for a CPU-only build

say() { printf 'feedrate: %s\n' "$*" >&2; }
say_wrapped() { say "$*" 2>&1 | fold -s -w 80 >&2; }
die() { local code=$1; shift; say "$*"; exit "$code"; }
have() { command -v "$1" >/dev/null 2>&1; }
at_least() { [[ $(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n1) == "$2" ]]; }   # version $1 >= $2
hash_of() { cat -- "$@" | sha256sum | cut -c1-16; }   # of the content: a moved clone keeps its stamps

# Whether the disk of a path is full: less than 100 KiB or no inode left. File systems such as /proc have no size.
is_full() {
  local free
  free=$(df --output=size,avail,itotal,iavail -k -- "$(nearest "$1")" 2>/dev/null | tail -n1)
  awk '{ exit !($1 > 0 && $2 < 100 || $3 > 0 && $4 == 0) }' <<<"${free:--}"
}

# The path itself, or the nearest folder above it that exists.
nearest() {
  local path=$1
  while [[ ! -e $path && $path == */* && ${path%/*} != '' ]]; do path=${path%/*}; done
  if [[ -e $path ]]; then echo "$path"; elif [[ $1 == /* ]]; then echo /; else echo .; fi
}

cannot_write() {   # cannot_write PATH WHAT-TO-DO
  local why='this user may not write there'
  ! is_full "$1" || die 1 "no space left for $1: free some space, then run this again"
  if [[ -e $(nearest "$1") && ! -d $(nearest "$1") ]]; then
    why='a file is in the way'
  elif ((EUID == 0)); then
    why='it is read-only'
  fi
  die 2 "cannot write $1: $why; $2"
}

# Exits with a one-line message, before anything is installed or built, if a folder cannot be created or written.
require_writable() {   # require_writable WHAT-TO-DO FOLDER…
  local advice=$1 folder place
  shift
  for folder in "$@"; do
    place=$(nearest "$folder")
    [[ -d $place && -w $place ]] || cannot_write "$folder" "$advice"
  done
}

# Runs a command with its output in a log, and shows the end of the log (FEEDRATE_TAIL lines) only if the command fails.
# The command can write to the user on descriptor 3. A full disk is reported in one line and ends the shell, because any
# further step would fail for the same reason.
logged() {
  local name=$1 log=$FEEDRATE_LOGS/$1.log rc=0
  shift
  { mkdir -p "$FEEDRATE_LOGS" && : >"$log"; } 2>/dev/null || cannot_write "$log" 'this step logs its output there'
  { printf '+'; printf ' %q' "$@"; printf '\n'; "$@"; } 3>&2 >"$log" 2>&1 || rc=$?
  ((rc == 0)) && return
  if grep -qE 'No space left on device|enough free space|Disk quota exceeded' "$log" || is_full "$log"; then
    die 1 "failed: $name: no space left on the disk$(full_place); full log: $log"
  fi
  tail -n "${FEEDRATE_TAIL:-40}" "$log" >&2
  say "failed (exit $rc): $name; full log: $log"
  return "$rc"
}

# Prints the fullest of the file systems that are written to.
full_place() {
  df --output=avail,target -k -- "$FEEDRATE_ROOT" "$(nearest "$FEEDRATE_LOGS")" "${TMPDIR:-/tmp}" /var 2>/dev/null |
    tail -n +2 | sort -n | awk 'NR == 1 { kib = $1; $1 = ""; printf " at%s (%d MB are free)", $0, kib / 1024 }'
}

# Prints a message to the user from within a logged command.
tell() { printf 'feedrate: %s\n' "$*" >&3; }

# Minutes and seconds: 75 -> 1 min 15 s.
duration() { if (($1 < 60)); then echo "$1 s"; else echo "$(($1 / 60)) min $(($1 % 60)) s"; fi; }

# ---------------------------------------------------------------------------------------------- Debian packages

# The functions below probe for the tool or header itself, not for the package, so other ways to install it count as
# well.
missing_tools() {
  have g++ && at_least "$(g++ -dumpfullversion)" 12 || echo g++
  have cmake && at_least "$(cmake --version | sed -n '1s/[^0-9]*//p')" 3.25 || echo cmake
  have ninja || echo ninja-build
  [[ ! -e $FEEDRATE_ROOT/.git ]] || have git || echo git   # names the revision in the rows
  have redis-server || echo redis-server
  [[ -e /etc/ssl/certs/ca-certificates.crt || -n ${SSL_CERT_FILE:-} || ! -x /usr/bin/apt-get ]] || echo ca-certificates
}

# Package and header, one pair per line.
FEEDRATE_HEADERS='libhiredis-dev hiredis/hiredis.h
liburing-dev liburing.h
libcsv-dev csv.h
zlib1g-dev zlib.h
liblzma-dev lzma.h
nlohmann-json3-dev nlohmann/json.hpp
libcli11-dev CLI/CLI.hpp
libspdlog-dev spdlog/spdlog.h
libfmt-dev fmt/format.h'
FEEDRATE_TEST_HEADERS='libbenchmark-dev benchmark/benchmark.h
libgtest-dev gtest/gtest.h
libgmock-dev gmock/gmock.h
prometheus-cpp-dev prometheus/text_serializer.h'

# Prints the packages of those headers that the compiler does not find.
lacking() {   # lacking PAIRS
  local package header
  while read -r package header; do   # one run of the preprocessor checks all
    printf '#if !__has_include(<%s>)\nmissing %s\n#endif\n' "$header" "$package"
  done <<<"$1" | g++ -E -P -x c++ -I "$FEEDRATE_ROOT/.deps/usr/include" - | sed -n 's/^missing //p' | tr -d ' '
}

missing_headers() {
  local pairs=$FEEDRATE_HEADERS
  [[ $FEEDRATE_PURPOSE != tests ]] || pairs+=$'\n'$FEEDRATE_TEST_HEADERS
  if have g++; then lacking "$pairs"; else cut -d' ' -f1 <<<"$pairs"; fi
}

missing_python() {
  python_ready && return
  if ! have python3; then
    printf '%s\n' python3 python3-venv
  elif ! python3 -c 'import venv, ensurepip' 2>/dev/null && ! system_python_suffices; then
    echo python3-venv
  fi
}

# Prints the package with Python's headers if they are missing. The Python package needs them, and the tests build it.
missing_python_headers() {
  [[ $FEEDRATE_PURPOSE != measure ]] || return 0
  have python3 && python3 -c 'import os, sysconfig, sys
sys.exit(not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")))' || echo python3-dev
}

missing_packages() { missing_tools; missing_headers; missing_python; missing_python_headers; }

install_packages() {
  local missing sudo='' command
  missing=$(missing_packages)
  missing=${missing//$'\n'/ }
  [[ -z $missing ]] && return
  command="apt-get install -y --no-install-recommends $missing"
  have apt-get || die 2 "these packages (names as in Debian and Ubuntu) are missing: $missing. There is no apt-get here: install them with this system's package manager."
  if ((EUID != 0)); then
    # Ask for a password only at a terminal; anywhere else this would hang.
    if have sudo && { sudo -n true 2>/dev/null || [[ -t 0 && -t 2 ]]; }; then
      sudo=sudo
    else
      die 2 "not root and no sudo, and these packages are missing: $missing
feedrate: as root run: apt-get update && $command
feedrate: or make a bundle on a machine that has them, and unpack it here; it needs no installed packages:
feedrate:   experiments/run_experiment.sh --bundle     # prints the archive's path; then here: ./run sweep"
    fi
  fi
  say_wrapped "installing Debian packages: $missing"
  local started=$SECONDS
  # shellcheck disable=SC2086  # package names and the optional sudo are words
  logged apt apt_install "$sudo" $missing || die 1 'apt-get could not install the packages above'
  missing=$(missing_packages)
  say "installed the Debian packages in $(duration $((SECONDS - started)))"
  [[ -z $missing ]] || die 1 "still missing or too old after the installation: ${missing//$'\n'/ } (needs g++ >= 12, CMake >= 3.25)"
}

# Runs in a subshell, so that its traps undo temporary changes. apt_install SUDO PACKAGE…
apt_install() (
  sudo=$1
  shift
  # dpkg insists on the sbin folders, which a user's PATH may lack.
  as_root=(${sudo:+"$sudo"} env DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 "PATH=/usr/local/sbin:/usr/sbin:/sbin:$PATH")
  apt=("${as_root[@]}" apt-get -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3)
  # Feedrate starts a private Redis, so the package must not leave a service running on this machine. An existing
  # policy-rc.d or Redis installation remains unchanged.
  policy=/usr/sbin/policy-rc.d
  new_redis=0
  [[ " $* " == *' redis-server '* ]] && new_redis=1
  if ((new_redis)) && [[ ! -e $policy ]]; then
    trap '"${as_root[@]}" rm -f "$policy"' EXIT
    printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee "$policy" >/dev/null
    "${as_root[@]}" chmod 755 "$policy"
  fi
  "${apt[@]}" update || echo 'apt-get update failed; trying with the existing package lists'
  sizes=$("${apt[@]}" install --assume-no --no-install-recommends "$@" 2>&1 |
    sed -n 's/^Need to get \(.*\) of archives.*/\1 to download/p
            s/^After this operation, \(.*\) of additional.*/, \1 on disk/p')
  tell "apt-get, including dependencies: ${sizes//$'\n'/}"
  "${apt[@]}" install -y --no-install-recommends "$@" || exit
  if ((new_redis)); then   # no service may start at the next boot either
    if have systemctl; then "${as_root[@]}" systemctl disable redis-server.service || true; fi
    "${as_root[@]}" update-rc.d redis-server disable || true
  fi
)

# Only the headers of valijson's package are needed, and the package depends on 160 others (Qt, Poco …). So the package
# is unpacked into this clone, which does not require root either.
install_valijson() {
  [[ -n $(lacking 'libvalijson-dev valijson/validator.hpp') ]] || return 0
  say 'fetching only the package libvalijson-dev, for its headers, into .deps'
  FEEDRATE_TAIL=8 logged valijson unpack_valijson ||
    die 2 "libvalijson-dev could not be fetched: run apt-get update as root, or put valijson's headers into .deps/usr/include"
}

unpack_valijson() {
  local new=$FEEDRATE_ROOT/.deps.new
  rm -rf "$new"
  mkdir "$new"
  (cd "$new" && { apt-get download libvalijson-dev || { apt-get update && apt-get download libvalijson-dev; }; } &&
    dpkg -x libvalijson-dev_*.deb . && rm libvalijson-dev_*.deb) || return
  rm -rf "$FEEDRATE_ROOT/.deps"
  mv "$new" "$FEEDRATE_ROOT/.deps"
}

# ---------------------------------------------------------------------------------------------- Python

# .venv/ holds the packages of requirements.txt for reports and, once the tests have run, those of
# tests/requirements.txt. A stamp for each file records what is installed, so neither command reinstalls the other's
# packages.
venv_has() {   # venv_has REQUIREMENTS
  local stamp
  stamp=$(stamp_of "$1")
  [[ -x $FEEDRATE_PYTHON && -e $stamp && $(<"$stamp") == "$(hash_of "$FEEDRATE_ROOT/$1")" ]]
}
stamp_of() { echo "$FEEDRATE_ROOT/.venv/.stamp-${1//\//-}"; }
python_ready() { venv_has requirements.txt && { [[ $FEEDRATE_PURPOSE != tests ]] || venv_has tests/requirements.txt; }; }

# Whether the packages of a Python installation satisfy the lower bounds in a requirements file.
suffices() {   # suffices PYTHON REQUIREMENTS
  "$1" - "$FEEDRATE_ROOT/$2" 2>/dev/null <<'PYTHON'
import importlib, importlib.metadata, re, sys
numbers = lambda text: [int(n) for n in re.findall(r"\d+", text)[:2]]
for line in open(sys.argv[1]):
    if found := re.match(r"([\w-]+)>=([\d.]+)", line):
        importlib.import_module(found[1])
        if numbers(importlib.metadata.version(found[1])) < numbers(found[2]):
            sys.exit(1)
PYTHON
}
system_python_suffices() { suffices python3 requirements.txt; }

pip_install() {
  "$FEEDRATE_PYTHON" -m pip install --disable-pip-version-check --no-input --retries 3 --timeout 20 --progress-bar off "$@"
}

venv_from_pypi() {
  python3 -m venv --clear "$FEEDRATE_ROOT/.venv" && pip_install -r "$FEEDRATE_ROOT/requirements.txt"
}

venv_from_system() {
  system_python_suffices && python3 -m venv --clear --system-site-packages --without-pip "$FEEDRATE_ROOT/.venv"
}

names_in() { sed -n 's/^\([a-z0-9-]*\)>=.*/\1/p' "$FEEDRATE_ROOT/$1" | paste -sd' '; }   # names_in REQUIREMENTS

# Prints how much pip downloaded, from the lines `Downloading numpy-….whl (16.6 MB)` in its log.
say_downloaded() {   # say_downloaded LOG SECONDS
  local mb
  mb=$(sed -n 's/.*Downloading .* (\([0-9.]*\) \([kMG]\)B)$/\1 \2/p' "$FEEDRATE_LOGS/$1.log" |
    awk '{ mb += $1 * ($2 == "k" ? 0.001 : $2 == "G" ? 1000 : 1) } END { printf "%.0f", mb }')
  say "installed in $(duration "$2"), ${mb} MB downloaded"
}

install_python() {
  local started=$SECONDS
  if ! venv_has requirements.txt; then
    say "installing Python packages from PyPI into .venv: $(names_in requirements.txt)"
    if FEEDRATE_TAIL=8 logged python venv_from_pypi; then
      say_downloaded python $((SECONDS - started))
    else
      logged python-system venv_from_system ||
        die 1 "the Python packages in requirements.txt could not be installed, and the system's python3 lacks some of them"
      say "the installation from PyPI failed; using the system's own Python packages"
    fi
    hash_of "$FEEDRATE_ROOT/requirements.txt" >"$(stamp_of requirements.txt)"
  fi
  if [[ $FEEDRATE_PURPOSE == tests ]] && ! venv_has tests/requirements.txt; then
    if ! suffices "$FEEDRATE_PYTHON" tests/requirements.txt; then
      say "installing the tests' Python packages from PyPI into .venv: $(names_in tests/requirements.txt)"
      FEEDRATE_TAIL=8 logged python-tests pip_install -r "$FEEDRATE_ROOT/tests/requirements.txt" ||
        die 1 "the Python packages in tests/requirements.txt could not be installed"
    fi
    hash_of "$FEEDRATE_ROOT/tests/requirements.txt" >"$(stamp_of tests/requirements.txt)"
  fi
}

# ---------------------------------------------------------------------------------------------- CUDA

nvcc_version() { "$1" --version 2>/dev/null | sed -n 's/.*release \([0-9.]*\).*/\1/p'; }

# Prints the compiler for CMake: from PATH, the usual folder, or .cuda/, in this order. C++20 needs 12.0 or later. The
# path is the toolkit's real folder, so that wrappers and links to one toolkit do not look like a change of compiler.
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

# The wheels share one folder, nvidia/cu13, laid out like a toolkit except for a few names that nvcc, CMake and the
# linker expect.
cuda_from_pypi() {
  local new=$FEEDRATE_ROOT/.cuda.new kit library
  rm -rf "$new"
  pip_install --no-compile --no-deps --only-binary=:all: --target "$new" -r "$FEEDRATE_ROOT/cmake/cuda-pypi.txt" || return
  kit=$new/nvidia/cu13
  [[ -d $kit/lib64 ]] || ln -s lib "$kit/lib64"
  for library in "$kit"/lib/*.so.*; do
    [[ -e ${library%.so.*}.so ]] || ln -s "${library##*/}" "${library%.so.*}.so"
  done
  # CMake and nvcc expect the parts at these paths; links leave the folder's layout (nvcc.profile's TOP) unchanged.
  for library in bin include lib lib64 nvvm; do ln -s "nvidia/cu13/$library" "$new/$library"; done
  "$new/bin/nvcc" --version || return
}

install_cuda() {
  [[ ${FEEDRATE_CUDA:-AUTO} == OFF ]] && return
  FEEDRATE_NVCC=$(find_nvcc) && return
  local folder=$FEEDRATE_ROOT/.cuda started=$SECONDS
  if [[ ! -e $folder/.feedrate-stamp || $(<"$folder/.feedrate-stamp") != "$(cuda_stamp)" ]]; then
    say 'no nvcc on this machine: fetching the CUDA 13 compiler and runtime (100 MB) from PyPI into .cuda'
    if FEEDRATE_TAIL=8 logged cuda cuda_from_pypi; then
      rm -rf "$folder"
      mv "$folder.new" "$folder"
      say_downloaded cuda $((SECONDS - started))
    else
      # Record the failure, so that the next run does not try again.
      rm -rf "$folder" "$folder.new"
      mkdir -p "$folder"
    fi
    cuda_stamp >"$folder/.feedrate-stamp"
  fi
  FEEDRATE_NVCC=$(find_nvcc) || say 'no CUDA toolkit found on this machine or on PyPI: building for the CPU only (remove .cuda to try again)'
}

# Whether this machine's driver reports a GPU.
has_gpu() {
  if have nvidia-smi; then
    [[ $(nvidia-smi -L 2>/dev/null) == GPU* ]]
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

# Prints a variable from the CMake cache of a preset's folder; prints nothing before the folder is configured.
cached() {   # cached PRESET VARIABLE
  [[ ! -e $FEEDRATE_ROOT/build/$1/CMakeCache.txt ]] || sed -n "s/^$2:[A-Z]*=//p" "$FEEDRATE_ROOT/build/$1/CMakeCache.txt"
}

# Decides whether this run needs CUDA: only a GPU can run CUDA code, but the tests check that it compiles. A folder
# configured with CUDA keeps it, so that the commands do not undo each other's work.
decide_cuda() {
  local had
  [[ -z ${FEEDRATE_CUDA:-} ]] || return 0
  had=$(cached release CMAKE_CUDA_COMPILER)
  FEEDRATE_CUDA=OFF
  if has_gpu || [[ $FEEDRATE_PURPOSE == tests || ${had:-NOTFOUND} != *NOTFOUND ]]; then FEEDRATE_CUDA=AUTO; fi
}

# Prints the architectures to compile device code for: those of this machine's GPUs or, without a GPU, the folder's, or
# 90.
architectures() {   # architectures PRESET
  local had gpus=''
  had=$(cached "$1" CMAKE_CUDA_ARCHITECTURES)
  if has_gpu; then
    gpus=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null |
      tr -d '. ' | sed '/^[0-9]\+$/!d' | sort -un | paste -sd';')
    [[ $had == native || -n $gpus && ";$had;" == *";$gpus;"* ]] || had=${gpus:-native}
  fi
  echo "${had:-90}"
}

# configure PRESET [-DNAME=value…]: configures only if the toolkit, the preset or the options changed; Ninja detects
# other changes.
configure() {
  local preset=$1 folder=$FEEDRATE_ROOT/build/$1 place key old='' tests=OFF
  shift
  place="$FEEDRATE_ROOT $FEEDRATE_NVCC"
  if [[ $preset == release || $preset == tests || $preset == debug || $preset == bundle ]]; then
    [[ -z $FEEDRATE_NVCC ]] || set -- "$@" "-DCMAKE_CUDA_COMPILER=$FEEDRATE_NVCC"
    [[ -z $FEEDRATE_NVCC || $preset == bundle ]] || set -- "$@" "-DCMAKE_CUDA_ARCHITECTURES=$(architectures "$preset")"
    [[ -z ${FEEDRATE_CUDA:-} ]] || set -- "$@" "-DFEEDRATE_CUDA=$FEEDRATE_CUDA"
  fi
  if [[ $FEEDRATE_PURPOSE == tests || $(cached "$preset" FEEDRATE_TESTS) == ON ]]; then tests=ON; fi
  [[ -z ${FEEDRATE_WERROR:-} ]] || set -- "$@" "-DFEEDRATE_WERROR=$FEEDRATE_WERROR"
  set -- "$@" "-DFEEDRATE_TESTS=$tests" "-DPython3_EXECUTABLE=$FEEDRATE_PYTHON"
  key=$(printf '%s\n' "$place" "$(hash_of "$FEEDRATE_ROOT/CMakePresets.json")" "$@")
  [[ ! -e $folder/.feedrate-key ]] || old=$(<"$folder/.feedrate-key")
  [[ -e $folder/build.ninja && $old == "$key" ]] && return
  # CMake drops the preset's variables if it finds another compiler in a folder that was configured by hand.
  [[ -n $old || ! -e $folder/CMakeCache.txt ]] || old=by-hand
  if [[ -n $old && ${old%%$'\n'*} != "$place" && ${old%%$'\n'*} != "$FEEDRATE_ROOT " ]]; then
    set -- --fresh "$@"   # the clone or the toolkit moved, so the cache is not reliable
  fi
  say "configuring build/$preset"
  cd "$FEEDRATE_ROOT"
  # A folder that was configured by hand would keep using its other Python.
  logged "configure-$preset" cmake --preset "$preset" '-U_Python3_*' "$@" || exit 1
  cd "$OLDPWD"
  printf '%s\n' "$key" >"$folder/.feedrate-key"
}

# Configures several presets at the same time, because CMake uses one core.
configure_all() {   # configure_all PRESET…
  local preset process processes=()
  for preset in "$@"; do
    configure "$preset" &
    processes+=($!)
  done
  for process in "${processes[@]}"; do wait "$process" || exit $?; done
}

# Runs a build with Ninja's status in a format that show_progress reads.
with_progress() {   # with_progress WHAT COMMAND…
  local what=$1
  shift
  NINJA_STATUS='[%f/%t %e s] ' "$@" 2>&1 | show_progress "$what"
}

# Passes lines on to the log and shows the user (descriptor 3) the progress of the build: at a terminal in one line that
# is updated in place, elsewhere in a new line every FEEDRATE_PROGRESS seconds (15). The time left is estimated from the
# rate so far.
show_progress() {   # show_progress WHAT
  local what=$1 line='' part status finished=0 all=0 spent text terminal=0 started=$SECONDS told=$SECONDS
  [[ ! -t 3 ]] || terminal=1
  while :; do
    status=0
    IFS= read -r -t 1 part || status=$?
    line+=$part
    if ((status == 0)); then
      printf '%s\n' "$line"
      [[ ! $line =~ ^\[([0-9]+)/([0-9]+)\ .*s\] ]] || finished=${BASH_REMATCH[1]} all=${BASH_REMATCH[2]}
      line=''
    elif ((status <= 128)); then   # above 128: no complete line arrived within a second
      break
    fi
    ((all > 0 && (terminal || SECONDS - told >= ${FEEDRATE_PROGRESS:-15}))) || continue
    told=$SECONDS spent=$((SECONDS - started))
    text="$what: $finished of $all steps, $(duration "$spent")"
    if ((finished > 2 && spent > 4)); then text+=", $(duration $((spent * (all - finished) / finished))) left"; fi
    if ((terminal)); then printf '\r\033[Kfeedrate: %s' "$text" >&3; else tell "$text"; fi
  done
  printf '%s' "$line"
  if ((terminal)); then printf '\r\033[K' >&3; fi
}

# build PRESET [TARGET…]. The array FEEDRATE_WRAP is a command that wraps the build.
FEEDRATE_WRAP=()
build() {
  local preset=$1 started=$SECONDS
  shift
  cd "$FEEDRATE_ROOT"
  logged "build-$preset" with_progress "building $preset" "${FEEDRATE_WRAP[@]}" \
    cmake --build --preset "$preset" --parallel "$(nproc)" ${1:+--target "$@"} || exit 1
  cd "$OLDPWD"
  ((SECONDS - started < 5)) || say "built build/$preset in $(duration $((SECONDS - started)))"
}

# ---------------------------------------------------------------------------------------------- setup

install_everything() {
  install_packages
  install_valijson
  install_python
  install_cuda
}

require_writable_clone() {
  local folders=("$FEEDRATE_ROOT/build" "$FEEDRATE_LOGS")
  python_ready || folders+=("$FEEDRATE_ROOT/.venv")
  require_writable 'clone Feedrate into a folder that you may write to' "${folders[@]}"
}

feedrate_setup() {   # feedrate_setup [tests|python]
  FEEDRATE_PURPOSE=${1:-measure}
  # In an empty environment bash has a PATH but does not export it.
  export PATH="${PATH:-/usr/local/bin:/usr/bin:/bin}" HOME="${HOME:-$FEEDRATE_ROOT/build}"
  require_writable_clone
  decide_cuda
  locked install_everything
  export_openblas
}

# OpenBLAS is a peer of the kernels for the CPU. If it is not installed, the one in NumPy's wheel is used.
export_openblas() {
  local found
  found=$(compgen -G "$FEEDRATE_ROOT/.venv/lib/python3*/site-packages/numpy.libs/libscipy_openblas64_-*.so" | head -n1) || true
  [[ -n ${FEEDRATE_OPENBLAS:-} || -z $found ]] || ldconfig -p | grep -q 'libopenblas\.so\.0' ||
    export FEEDRATE_OPENBLAS=$found
}

# Installs the `feedrate` package into .venv/, with this clone's executable.
install_python_package() {
  configure release
  build release feedrate
  say 'installing the Python package feedrate into .venv'
  FEEDRATE_TAIL=15 logged python-package pip_install "$FEEDRATE_ROOT[harness,redis]" \
    --config-settings=cmake.define.FEEDRATE_EXECUTABLE="$FEEDRATE_ROOT/build/release/bin/feedrate" ||
    die 1 'the Python package could not be built'
}

if [[ ${BASH_SOURCE[0]} == "$0" ]]; then
  [[ ${1:-tests} =~ ^(tests|python)$ ]] || die 2 "invalid argument '$1'; allowed: tests, python"
  if [[ ${1:-} == python ]]; then
    feedrate_setup python
    install_python_package
  else
    feedrate_setup "$@"
  fi
  say "ready: Python $FEEDRATE_PYTHON, CUDA compiler ${FEEDRATE_NVCC:-none (CPU-only)}, GPU $(has_gpu && echo yes || echo no)"
fi
