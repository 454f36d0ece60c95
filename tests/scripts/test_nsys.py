"""Tests of `run_experiment.sh --nsys` with a fake nsys and a fake feedrate that only record their arguments."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "experiments/run_experiment.sh"

# Behaves like the real nsys: it runs the program in a separate process group, forwards no signals, returns the
# program's exit code, and writes its report only at the end.
NSYS = """#!/usr/bin/env bash
printf '%s\\n' "$@" >"$LOG/nsys"
trap : INT TERM
for argument; do
  [[ $argument == --output=* ]] && output=${argument#*=}
  [[ $argument == sh ]] && break
  shift
done
sleep "${NSYS_STARTS_IN:-0}"
set -m
"$@" &
while :; do
  status=0
  wait $! || status=$?
  kill -0 $! 2>/dev/null || break
done
[[ -n ${NSYS_SEES_NOTHING:-} ]] || echo report >"$output.nsys-rep"
exit $status
"""

FEEDRATE = """#!/usr/bin/env python3
import os, pathlib, signal, sys, time
log = pathlib.Path(os.environ["LOG"])
(log / "feedrate").write_text("\\n".join(sys.argv[1:]))
got = []
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, lambda number, _: got.append(signal.Signals(number).name))
(log / "ready").touch()
end = time.monotonic() + float(os.environ.get("SWEEP_SECONDS", 0))
while time.monotonic() < end and not got:
    time.sleep(0.02)
time.sleep(0.3 if got else 0)  # a second signal would arrive during this time
(log / "signals").write_text(" ".join(got))
sys.exit(130 if got else int(os.environ.get("SWEEP_EXIT", 0)))
"""


class Place:
    """A folder with both programs in bin/ and their records in log/."""

    def __init__(self, folder: Path):
        self.folder, self.log, self.bin = folder, folder / "log", folder / "bin"
        self.log.mkdir()
        self.bin.mkdir()
        for name, text in (("nsys", NSYS), ("feedrate", FEEDRATE)):
            (self.bin / name).write_text(text)
            (self.bin / name).chmod(0o755)

    def start(self, *arguments: str, **variables: str) -> subprocess.Popen:
        paths = {"PATH": f"{self.bin}:{os.environ['PATH']}", "LOG": str(self.log), "TMPDIR": str(self.folder)}
        return subprocess.Popen(
            ["bash", str(SCRIPT), *arguments],
            env=os.environ | paths | {"FEEDRATE_EXECUTABLE": str(self.bin / "feedrate")} | variables,
            cwd=self.folder,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def run(self, *arguments: str, **variables: str) -> tuple[int, str]:
        """Returns the exit code and the output on stderr."""
        process = self.start(*arguments, **variables)
        errors = process.communicate(timeout=60)[1]
        return process.returncode, errors

    def arguments_of(self, program: str) -> list[str]:
        return (self.log / program).read_text().splitlines()

    def path_without(self, program: str) -> str:
        """Returns a PATH with all programs on this machine's PATH except one."""
        links = self.folder / "links"
        links.mkdir()
        for folder in map(Path, os.environ["PATH"].split(":")):
            for file in folder.iterdir() if folder.is_dir() else ():
                if file.name != program and not (links / file.name).is_symlink():
                    (links / file.name).symlink_to(file)
        return str(links)


@pytest.fixture
def place(tmp_path) -> Place:
    return Place(tmp_path)


def test_missing_nsys_is_reported_in_one_line_and_nothing_runs(place):
    code, said = place.run("quick", "--nsys", "--out", "rows", PATH=place.path_without("nsys"))
    assert code == 2
    assert said.splitlines() == ["feedrate: --nsys needs Nsight Systems, and there is no 'nsys' on PATH"]
    assert not (place.log / "feedrate").exists() and not (place.folder / "rows").exists()


def test_complete_sweep_is_recorded_next_to_its_rows(place):
    code, said = place.run("quick", "--nsys", "--out", "rows", "--seconds", "1")
    (report,) = (place.folder / "rows").glob("nsys-*.nsys-rep")
    assert code == 0 and f"profile: rows/{report.name}" in said
    options = place.arguments_of("nsys")
    assert options[0] == "profile" and "--trace=cuda,nvtx,osrt" in options
    assert f"--output=rows/{report.stem}" in options
    assert not [option for option in options if option.startswith("--capture-range")]
    assert place.arguments_of("feedrate")[2:] == ["--out", "rows", "--seconds", "1"]
    assert not list(place.folder.glob("tmp.*")), "temporary files were left"


@pytest.mark.parametrize("cell", [["--profile-cell", "3"], ["--profile-cell=3"]])
def test_only_the_chosen_cell_is_recorded_and_the_sweep_continues(place, cell):
    assert place.run("quick", "--nsys", *cell, "--out", "rows")[0] == 0
    options = place.arguments_of("nsys")
    assert "--capture-range=cudaProfilerApi" in options and "--capture-range-end=stop" in options
    assert place.arguments_of("feedrate")[2:] == ["--out", "rows", *cell]


def test_resumed_sweep_keeps_the_earlier_report(place):
    rows = place.folder / "rows"
    rows.mkdir()
    (rows / "nsys-20260101T000000Z.nsys-rep").write_text("earlier")
    assert place.run("--nsys", "--resume", "rows")[0] == 0
    assert len(list(rows.glob("nsys-*.nsys-rep"))) == 2
    assert (rows / "nsys-20260101T000000Z.nsys-rep").read_text() == "earlier"


def test_exit_code_of_the_sweep_is_returned(place):
    assert place.run("quick", "--nsys", "--out", "rows", SWEEP_EXIT="2")[0] == 2


def test_empty_recording_is_reported(place):
    code, said = place.run("quick", "--nsys", "--profile-cell", "3", "--out", "rows", NSYS_SEES_NOTHING="1")
    assert code == 0 and "no profile" in said


def test_dry_run_is_not_recorded(place):
    assert place.run("quick", "--nsys", "--dry-run")[0] == 0
    assert not (place.log / "nsys").exists() and "--dry-run" in place.arguments_of("feedrate")


def test_nsys_is_not_started_without_the_option(place):
    assert place.run("quick", "--out", "rows")[0] == 0
    assert not (place.log / "nsys").exists()


@pytest.mark.parametrize("options", [["--nsys"], []])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_reaches_the_sweep_once(place, options, number):
    process = place.start("quick", "--out", "rows", *options, SWEEP_SECONDS="30")
    wait_for(place.log / "ready")
    process.send_signal(number)
    process.communicate(timeout=20)
    assert process.returncode == 130
    assert (place.log / "signals").read_text() == number.name
    assert bool(list((place.folder / "rows").glob("*.nsys-rep"))) == bool(options), "the report must still be written"


def test_signal_during_the_start_of_nsys_is_not_lost(place):
    process = place.start("quick", "--out", "rows", "--nsys", SWEEP_SECONDS="30", NSYS_STARTS_IN="1")
    wait_for(place.log / "nsys")
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=20)
    assert process.returncode == 130


def wait_for(file: Path) -> None:
    end = time.monotonic() + 20
    while not file.exists():
        assert time.monotonic() < end, f"no {file.name}"
        time.sleep(0.02)
