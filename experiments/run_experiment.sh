#!/usr/bin/env bash
# From a clone to a report: installs missing packages, builds, runs a sweep and makes its report. See --help.
set -euo pipefail
# shellcheck source=experiments/setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

usage() {
  cat <<'TEXT'
Usage: experiments/run_experiment.sh [SPEC] [OPTIONS]
       experiments/run_experiment.sh --bundle

Installs missing packages, builds Feedrate, runs the sweep SPEC (default: quick) on the GPU or, if there is none, on the
CPU device, and makes a report. Rows and report go to results/<UTC time>-<spec>/; the last line printed is the report's
path. A second run installs and rebuilds nothing.

  SPEC            a name in experiments/specs/ or a path to a .json file
  --out DIR       write to DIR instead of results/<UTC time>-<spec>/
  --resume DIR    continue the interrupted sweep whose rows are in DIR
  --redis URL     use this Redis instead of a private one: redis://[user:password@]host:port or unix:///path
  --axis NAME=V   sweep these values instead of the spec's: --axis payload=64,1Ki --axis window=pow2:0..12:2
  --bundle        measure nothing; build build/bundle/feedrate-bundle.tar.xz, which runs on GPU hosts without network,
                  packages or root, and print its path
  --nsys          run the sweep under Nsight Systems (`nsys` must be on PATH) and write its report next to the rows; with
                  --profile-cell N it contains only that cell (see analysis/profiling.md)
  --help          print this text

Every other option is passed to `feedrate sweep`; `build/release/bin/feedrate sweep --help` lists them.
Ctrl-C or SIGTERM ends the sweep cleanly; the report is still made from the rows measured so far, and --resume continues.
Without a GPU the build leaves out CUDA (tests/run_tests.sh adds it); FEEDRATE_CUDA=AUTO builds it if nvcc is available.
Exit codes: 0 success, 1 a failure, 2 bad arguments, missing packages or an unwritable folder, 130 interrupted.
TEXT
}

spec='' out='' resume='' dry_run=0 nsys=0 bundle=0
profile_cell=${FEEDRATE_PROFILE_CELL:-}
options=()

# Parses the options that this script itself needs; the sweep gets all others and validates them.
parse() {
  local given=$#
  if (($#)) && [[ $1 != -* ]]; then
    spec=$1
    shift
  fi
  while (($#)); do
    case $1 in
      -h | --help) usage; exit 0 ;;
      --out | --resume)
        (($# > 1)) || die 2 "$1 needs a folder"
        if [[ $1 == --out ]]; then out=$2; else resume=$2; fi
        shift
        ;;
      --out=*) out=${1#*=} ;;
      --resume=*) resume=${1#*=} ;;
      --dry-run) dry_run=1; options+=("$1") ;;
      --nsys) nsys=1 ;;
      --bundle) bundle=1 ;;
      --profile-cell | --profile-cell=*) profile_cell=1; options+=("$1") ;;
      *) options+=("$1") ;;
    esac
    shift
  done
  ((!bundle || given == 1)) || die 2 '--bundle allows no other arguments: it measures nothing'
  [[ -z $out || -z $resume ]] || die 2 '--out and --resume are mutually exclusive: a resumed sweep writes to its own folder'
  [[ -z $resume || -d $resume ]] || die 2 "--resume $resume: no such folder"
  ((!nsys)) || have nsys || die 2 "--nsys needs Nsight Systems, and there is no 'nsys' on PATH"
}

# Prints the file of a spec. Called before the build, which may take minutes.
find_spec() {
  local file=$FEEDRATE_ROOT/experiments/specs/$1.json known
  if [[ -f $1 ]]; then
    echo "$1"
  elif [[ -f $file ]]; then
    echo "$file"
  else
    known=$(cd "$FEEDRATE_ROOT/experiments/specs" && printf '%s\n' *.json | sed 's/\.json$//' | paste -sd' ')
    die 2 "spec '$1': no such file; names of specs: $known"
  fi
}

# Prints results/<UTC time>-<spec>, made unique in case two sweeps start within a second.
new_folder() {
  local time folder n=1
  time=$(date -u +%Y%m%dT%H%M%SZ)
  folder=$FEEDRATE_ROOT/results/$time-$1
  while [[ -e $folder ]]; do folder=$FEEDRATE_ROOT/results/$time.$((++n))-$1; done
  echo "$folder"
}

# Sets `wrap`, the command that runs the sweep under Nsight Systems; the sweep writes its process id to the file $1.
# nsys takes no samples, and the sweep continues after its profiled cell, so the rows are like those of any other sweep.
under_nsys() {
  profile=$out/nsys-$(date -u +%Y%m%dT%H%M%SZ)
  mkdir -p "$out" || die 2 "--out $out: not a writable folder"   # nsys does not create folders
  wrap=(nsys profile "--trace=cuda,nvtx,osrt" --sample=none --cpuctxsw=none "--output=$profile")
  [[ -z $profile_cell ]] || wrap+=(--capture-range=cudaProfilerApi --capture-range-end=stop)
  # shellcheck disable=SC2016  # the inner shell's own names
  wrap+=(sh -c 'echo $$ >"$1"; shift; exec "$@"' sh "$1")
}

# Sends a signal to the sweep itself, because nsys does not forward signals. Waits for the sweep if nsys is still
# starting it.
# shellcheck disable=SC2317  # called by traps
pass_on() {
  local pid=$child
  if [[ -n $pid && -n $pid_file ]]; then
    until read -r pid <"$pid_file" || ! kill -0 "$child" 2>/dev/null; do sleep 0.05; done
  fi
  [[ -z $pid ]] || kill -"$1" "$pid" 2>/dev/null || true
}

# Runs the sweep so that a signal reaches it exactly once, whether it came from the terminal or was sent to this script:
# the sweep has its own process group (set -m), and this script forwards signals. Sets `status`.
sweep() {
  local child='' pid_file='' profile='' signal wrap=()
  if ((nsys && !dry_run)); then
    pid_file=$(mktemp)
    under_nsys "$pid_file"
  fi
  for signal in INT TERM HUP; do
    # shellcheck disable=SC2064  # expand the signal's name now
    trap "interrupted=1; pass_on $signal" "$signal"
  done
  set -m
  "${wrap[@]}" "$feedrate" sweep "$@" </dev/null &
  child=$!
  set +m
  while :; do   # `wait` returns early for every trapped signal
    status=0
    wait "$child" || status=$?
    kill -0 "$child" 2>/dev/null || break
  done
  trap - INT TERM HUP
  if ((interrupted)); then status=130; fi
  if [[ -n $pid_file ]]; then
    rm -f "$pid_file"
    if compgen -G "$profile.*" >/dev/null; then
      say "profile: $(compgen -G "$profile.*" | paste -sd' ')"
    else
      say 'no profile: nsys recorded nothing; with --profile-cell, the cell must be measured on a GPU'
    fi
  fi
}

# Prints what the host of an unpacked bundle lacks for a report; a clone has its .venv.
bundle_lacks() {
  local names code=0
  [[ -n ${FEEDRATE_EXECUTABLE:-} ]] || return 0
  if ! have python3; then
    echo 'this host has no python3'
    return
  fi
  names=$(PYTHONPATH=$FEEDRATE_ROOT python3 -m analysis needs 2>/dev/null) || code=$?
  if ((code == 1)) && [[ -n $names ]]; then
    echo "python3 here lacks ${names//$'\n'/, } (pip install --user ${names//$'\n'/ })"
  fi
}

report() {
  local folder=$1 lacks
  # Nothing was measured, for example after a rejected command line.
  [[ -n $(find "$folder" -maxdepth 1 -name '*.jsonl' -size +0 2>/dev/null) ]] || return 0
  # A sweep that was interrupted during its search has only tries, which are not results.
  if ! awk '/"kind":"cell"/ && !/"search":{/ { found = 1; exit } END { exit !found }' "$folder"/rows.jsonl; then
    say "nothing to report yet: no cell has been measured"
    return
  fi
  lacks=$(bundle_lacks)
  if [[ -n $lacks ]]; then
    say "no report: $lacks; the rows are in $folder"
    return
  fi
  # After an interruption, the sweep has just printed the command that resumes it; this must remain the last line.
  ((status == 130)) || say 'making the report'
  [[ -z ${FEEDRATE_EXECUTABLE:-} ]] || FEEDRATE_LOGS=$folder/logs
  # In a subshell, because a full disk ends the shell.
  (
    export PYTHONPATH=$FEEDRATE_ROOT${PYTHONPATH:+:$PYTHONPATH}
    logged report "$FEEDRATE_PYTHON" -m analysis report "$folder"
  ) || return 1
  ((status == 130)) || say "results: $folder"
  echo "$folder/report.html"
}

# Prints the program that has the experiment of a spec, if that is not feedrate.
full_program() { ! grep -qsE '"experiment": *"kernels"' "$1" || echo feedrate_full; }

# Sets `feedrate`, the executable.
prepare() {
  if [[ -n ${FEEDRATE_EXECUTABLE:-} ]]; then   # an unpacked bundle: already built, installs nothing
    feedrate=$FEEDRATE_EXECUTABLE
    FEEDRATE_PYTHON=python3
  else
    feedrate_setup
    locked configure release
    # shellcheck disable=SC2046  # no word, or one
    locked build release feedrate $(full_program "${spec:-$resume/spec.json}")
    feedrate=$FEEDRATE_ROOT/build/release/bin/feedrate
  fi
}

# Makes the archive for hosts where nothing can be installed, with the tests and device code for all supported GPUs.
make_bundle() {
  [[ -z ${FEEDRATE_EXECUTABLE:-} ]] || die 2 '--bundle needs a clone; this is an unpacked bundle'
  FEEDRATE_CUDA=${FEEDRATE_CUDA:-AUTO}
  feedrate_setup tests
  locked configure bundle
  locked build bundle bundle
  say "$(tail -n 5 "$FEEDRATE_LOGS/build-bundle.log" | sed -n 's/^-- .*feedrate-bundle.tar.xz: //p')"
  echo "$FEEDRATE_ROOT/build/bundle/feedrate-bundle.tar.xz"
}

main() {
  parse "$@"
  if ((bundle)); then
    make_bundle
    exit
  fi
  # A resumed folder holds its own spec and settings.
  if [[ -n $spec || -z $resume ]]; then spec=$(find_spec "${spec:-quick}"); fi
  [[ -n ${FEEDRATE_EXECUTABLE:-} ]] || require_writable_clone   # --out would not help
  if [[ -n $resume ]]; then
    require_writable 'the sweep continues in this folder' "$resume"
  elif ((!dry_run)); then
    require_writable 'name another folder with --out' "${out:-$FEEDRATE_ROOT/results}"
  fi
  prepare
  # An interrupted sweep prints how to continue, using the command that started it.
  export FEEDRATE_RESUME_WITH=${FEEDRATE_RESUME_WITH:-$called}
  status=0 interrupted=0
  if ((dry_run)); then
    sweep ${spec:+"$spec"} ${resume:+--resume "$resume"} "${options[@]}"
  elif [[ -n $resume ]]; then
    out=$(cd "$resume" && pwd)
    sweep ${spec:+"$spec"} --resume "$out" "${options[@]}"
  else
    out=${out:-$(new_folder "$(basename "$spec" .json)")}
    sweep "$spec" --out "$out" "${options[@]}"
  fi
  # The sweep's own exit status takes precedence over the report's.
  ((dry_run || status == 2)) || report "$out" || ((status)) || status=1
  exit "$status"
}

printf -v called '%q' "$0"
main "$@"
