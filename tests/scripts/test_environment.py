"""Tests of environments: those in which python/tests/run.sh and sanitize.sh run the Python package's tests, and the
variables that the program reads."""

import re
import subprocess

import pytest
from clone import SOURCE

# A fake Python whose pip fails $BREAKS times.
PYTHON = """#!/usr/bin/env bash
echo "$* retries=$PIP_RETRIES" >>"$LOG"
[[ $2 != pip ]] || (($(grep -c ' pip ' "$LOG") > BREAKS))
"""


@pytest.mark.parametrize("breaks, installed, tries", [(0, True, 1), (2, True, 3), (9, False, 3)])
def test_interrupted_installation_is_retried(tmp_path, breaks, installed, tries):
    python, log = tmp_path / "python", tmp_path / "log"
    python.write_text(PYTHON)
    python.chmod(0o755)
    script = 'set -eu; sleep() { :; }; source "$1/python/tests/environment.sh"; make_environment "$2" there one.whl; echo on'
    ran = subprocess.run(
        ["bash", "-c", script, "bash", SOURCE, python], env={"PATH": "/usr/bin:/bin", "LOG": str(log), "BREAKS": str(breaks)},
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert (ran.returncode == 0, ran.stdout) == (installed, "on\n" if installed else "")
    pips = [line for line in log.read_text().splitlines() if " pip " in line]
    assert pips == ["-m pip --python there/bin/python install -q --no-compile one.whl retries=5"] * tries


def test_every_variable_that_the_program_reads_is_accepted_and_explained():
    folders = ("common", "kernels", "libraries", "variants", "experiments")
    sources = [path for folder in folders for path in (SOURCE / folder).rglob("*.[ch]pp")]
    read = {name for path in sources for name in re.findall(r'(?:getenv\(|kVariable = )"(FEEDRATE_\w+)"', path.read_text())}
    accepted = set(re.findall(r'"(FEEDRATE_\w+)"', (SOURCE / "experiments/cli/sources.cpp").read_text()))
    explained = set(re.findall(r"`(FEEDRATE_\w+)`", (SOURCE / "experiments/reference.md").read_text()))
    assert {"FEEDRATE_OPENBLAS", "FEEDRATE_REDIS_SERVER"} <= read <= accepted
    assert read - {"FEEDRATE_RESUME_WITH"} <= explained  # set by the project's own script
