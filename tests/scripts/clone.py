"""A fake clone: the real scripts, with fake programs that only record their arguments.

The fakes of cmake, ctest, g++, apt-get, dpkg, nvidia-smi, nvcc and python3 are first on PATH; the machine's own
versions of these programs are neither used nor needed.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]

# Stores -D options in a CMakeCache.txt. A build has $STEPS steps of $STEP_SECONDS each and prints them in Ninja's
# format.
CMAKE = """#!/usr/bin/env bash
[[ $1 == --version ]] && { echo 'cmake version 3.25.1'; exit; }
echo "$*" >>"$LOG/cmake"
if [[ $1 == --preset ]]; then
  folder=build/$2
  mkdir -p "$folder"
  touch "$folder/build.ninja" "$folder/CMakeCache.txt"
  for word; do
    [[ $word == -D* ]] || continue
    name=${word#-D} value=${word#*=}
    sed -i "/^${name%%=*}:/d" "$folder/CMakeCache.txt"
    echo "${name%%=*}:STRING=$value" >>"$folder/CMakeCache.txt"
  done
  exit
fi
for ((i = 1; i <= ${STEPS:-1}; i++)); do
  sleep "${STEP_SECONDS:-0}"
  status=${NINJA_STATUS:-} status=${status//%f/$i} status=${status//%t/${STEPS:-1}} status=${status//%e/1.5}
  echo "${status}Building CXX object $i.o"
done
[[ -z ${BUILD_ERROR:-} ]] || { echo "$BUILD_ERROR"; exit 1; }
mkdir -p "build/$3/bin"
cp "$FAKES/feedrate" "build/$3/bin/feedrate"
echo '-- feedrate-bundle.tar.xz: 40 MiB; CUDA architectures: 80-real 90' | grep "${BUNDLE:-^$}"
exit 0
"""

# Writes the results $CASES (by default one passed test).
CTEST = """#!/usr/bin/env bash
echo "$* long=${LONG_TESTS:-}" >>"$LOG/ctest"
while (($#)); do
  [[ $1 != --output-junit ]] || echo "<testsuite>${CASES:-<testcase name='a' status='run'/>}</testsuite>" >"$2"
  shift
done
exit "${CTEST_EXIT:-0}"
"""

# Finds the headers in $HEADERS (by default all headers) and those in the folder after -I.
GXX = """#!/usr/bin/env bash
[[ $* != *-dumpfullversion* ]] || { echo 12.2.0; exit; }
while [[ $1 != -I ]]; do shift; done
while read -r first second; do
  case $first in
    '#if') header=${second#*<} header=${header%>*} ;;
    missing) [[ " ${HEADERS-$header} " == *" $header "* || -e $2/$header ]] || echo "missing $second" ;;
  esac
done
"""

APT_GET = """#!/usr/bin/env bash
echo "$*" >>"$LOG/apt-get"
[[ -z ${APT_FAILS:-} ]] || { echo "E: ${APT_FAILS}"; exit 100; }
[[ $1 != download ]] || : >"$2_1.0_all.deb"
[[ " $* " != *' --assume-no '* ]] || printf '%s\\n' 'Need to get 95.3 MB of archives.' \\
  'After this operation, 412 MB of additional disk space will be used.'
"""

DPKG = """#!/usr/bin/env bash
mkdir -p "$3/usr/include/valijson" && : >"$3/usr/include/valijson/validator.hpp"
"""

NVIDIA_SMI = """#!/usr/bin/env bash
[[ -n ${GPU:-} ]] || exit 9
if [[ $1 == -L ]]; then echo 'GPU 0: fake'; else echo "$GPU"; fi
"""

NVCC = """#!/usr/bin/env bash
[[ $1 != --version ]] || echo 'Cuda compilation tools, release 13.0, V13.0.88'
"""

# Creates virtual environments that contain this fake. $NEEDS and $REPORT_ERROR set the outcome of `analysis needs` and
# `analysis report`.
PYTHON = """#!/usr/bin/env bash
echo "$*" >>"$LOG/python"
case "$*" in
  '-m venv'*)
    folder=${*: -1}
    rm -rf "$folder"
    mkdir -p "$folder/bin"
    cp "$FAKES/python3" "$folder/bin/python"
    ;;
  '-m pip'*) echo '  Downloading numpy-2.0-manylinux.whl (16.6 MB)'; echo '  Downloading six.whl (400 kB)' ;;
  '-m analysis needs') [[ -z ${NEEDS:-} ]] || { printf '%s\\n' $NEEDS; exit 1; } ;;
  '-m analysis report'*)
    [[ -z ${REPORT_ERROR:-} ]] || { echo 'Traceback (most recent call last):'; echo "$REPORT_ERROR"; exit 1; }
    ;;
  *requirements.txt) exit 1 ;;
  -c*) ;;
  *) exec "$REAL_PYTHON" "$@" ;;
esac
"""

# Writes rows to the folder after --out, and the command for resuming to the log.
FEEDRATE = """#!/usr/bin/env bash
echo "$*" >>"$LOG/feedrate"
echo "${FEEDRATE_RESUME_WITH:-}" >"$LOG/resume-with"
row='{"kind":"cell"}'
for word; do
  [[ ${previous:-} != --out ]] || {
    mkdir -p "$word"
    for ((i = 0; i < ${SWEEP_ROWS:-1}; ++i)); do echo "${SWEEP_ROW:-$row}"; done >"$word/rows.jsonl"
  }
  previous=$word
done
echo "${SWEEP_SAYS:-}" >&2
exit "${SWEEP_EXIT:-0}"
"""

FAKES = {
    "cmake": CMAKE, "ctest": CTEST, "g++": GXX, "apt-get": APT_GET, "dpkg": DPKG, "nvidia-smi": NVIDIA_SMI, "nvcc": NVCC,
    "python3": PYTHON, "feedrate": FEEDRATE, "ninja": "#!/bin/sh\n", "redis-server": "#!/bin/sh\n",
    "sudo": "#!/bin/sh\nexit 1\n",
}  # fmt: skip


class Clone:
    """The scripts in `folder`, the fake programs in `fakes`, their records in `log`."""

    def __init__(self, place: Path):
        self.folder, self.fakes, self.log = place / "clone", place / "fakes", place / "log"
        for folder in (self.fakes, self.log):
            folder.mkdir()
        for path in ("experiments/setup.sh", "experiments/run_experiment.sh", "experiments/specs/quick.json",
                     "requirements.txt", "tests/run_tests.sh", "tests/read_results.py", "tests/requirements.txt", "cmake/cuda-pypi.txt", "CMakePresets.json"):  # fmt: skip
            (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(SOURCE / path, self.folder / path)
        for name, text in FAKES.items():
            (self.fakes / name).write_text(text)
            (self.fakes / name).chmod(0o755)

    def environment(self, **variables: str) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("FEEDRATE_", "CUDA"))}
        return kept | {
            "PATH": f"{self.fakes}:{os.environ['PATH']}",
            "LOG": str(self.log),
            "FAKES": str(self.fakes),
            "REAL_PYTHON": sys.executable,
            "SSL_CERT_FILE": "given",
        } | variables  # fmt: skip

    def run(self, *command: str, prefix: tuple[str, ...] = (), **variables: str) -> subprocess.CompletedProcess:
        """Runs one of the clone's scripts in the clone."""
        return subprocess.run(
            [*prefix, *command], cwd=self.folder, env=self.environment(**variables), text=True, capture_output=True, timeout=60
        )

    def told(self, program: str) -> list[str]:
        """Returns the command lines that a program was given since the last call."""
        file = self.log / program
        lines = file.read_text().splitlines() if file.exists() else []
        file.unlink(missing_ok=True)
        return lines


MAIN = "experiments/run_experiment.sh"
TESTS = "tests/run_tests.sh"
