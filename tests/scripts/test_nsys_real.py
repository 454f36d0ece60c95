"""Tests with a real nsys, if it is on the PATH: it records the ranges that analysis/profiling.md lists."""

import csv
import io
import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FEEDRATE = ROOT / "build/release/bin/feedrate"
NSYS = shutil.which("nsys")

pytestmark = [
    pytest.mark.skipif(NSYS is None, reason="no nsys on the PATH"),
    pytest.mark.skipif(not FEEDRATE.exists(), reason="no executable in build/release"),
]


def ranges(folder: Path, *arguments: str) -> dict[str, int]:
    """Profiles `feedrate run` and returns the number of instances of each range by name."""
    environment = os.environ | {"TMPDIR": str(folder)}
    output = folder / "profile"
    profile = [NSYS, "profile", "--trace=nvtx", "--sample=none", "--cpuctxsw=none", f"--output={output}"]
    run = [str(FEEDRATE), "run", "--device", "cpu", "--floor-rounds", "1", *arguments]
    done = subprocess.run([*profile, *run], env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    report = output.with_suffix(".nsys-rep")
    if not report.exists():
        pytest.skip("this nsys has no importer: " + done.stdout.strip().splitlines()[-1])
    for name in ("nvtx_sum", "nvtxsum"):  # the later name and the earlier one
        stats = [NSYS, "stats", "--report", name, "--format", "csv", "--force-export=true", str(report)]
        found = subprocess.run(stats, env=environment, capture_output=True, text=True, timeout=120)
        table = found.stdout[max(found.stdout.find("Time (%)"), 0) :]
        rows = list(csv.DictReader(io.StringIO(table)))
        if rows and "Range" in rows[0]:
            return {row["Range"].split(":", 1)[-1]: int(row["Instances"]) for row in rows}
    raise AssertionError(found.stdout + found.stderr)


def test_cell_has_ranges_for_its_phases_and_batches(tmp_path):
    found = ranges(tmp_path, "--queue", "host_polled", "--seconds", "0.1", "--repetitions", "2")
    assert found["repetition 0"] == found["repetition 1"] == 1
    assert found["warm-up"] == found["timed"] == 2
    assert found["submit"] == found["complete"] > 10
    assert any(name.startswith("cell host_polled + pinned ") for name in found)


def test_overlap_has_a_range_for_every_stage_of_every_item(tmp_path):
    point = ["--pipeline", "copy_process_copy", "--strategy", "ring", "--item", "4Ki", "--items", "8", "--cost-us", "20"]
    found = ranges(tmp_path, "--experiment", "overlap", *point, "--seconds", "0.05")
    assert found["copy in"] == found["process"] == found["copy out"]
    assert found["process"] % 8 == 0 and found["process"] >= 16
