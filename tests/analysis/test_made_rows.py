"""The analysis reads rows that `feedrate` measures on the CPU device."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT, report

SHAPE = {"queue": ["host_polled", "gpu_ring"], "transfer": "pinned", "payload": 64, "producers": 1, "window": 64}
ITEM = {"pipeline": "chain", "stages": 3, "item": "4Ki", "items": 8, "cost-us": 20}
FILES = {"size": "4Mi", "block": "64Ki", "depth": 4, "engine": ["pread", "io_uring"]}
SQUARE = {"m": 96, "n": 96, "k": 96, "cache": "hot"}
SPECS = {
    "feeding": [{"name": "closed", "axes": SHAPE}, {"name": "open", "axes": SHAPE | {"arrivals": "poisson", "rate": 10_000}}],
    "overlap": [{"name": "strategies", "axes": ITEM | {"strategy": ["serial", "ping_pong", "pdl"]}}],
    "handoff": [{"name": "size", "axes": {"way": ["shm_copy", "ipc_memfd", "ipc_vmm"], "bytes": ["4Ki", "1Mi"]}}],
    "storage": [
        {"name": "warm", "axes": FILES},
        {"name": "open", "axes": FILES | {"engine": "pread", "arrivals": "poisson", "rate": 500}},
    ],
    "kernels": [
        {"name": "rungs", "axes": SQUARE | {"rung": ["cpu_naive", "cpu_packed"]}},
        {"name": "depth", "axes": SQUARE | {"rung": "cpu_packed", "k": [64, 512], "inputs": "positive", "against": "alone"}},
        {"name": "no CPU rung", "axes": SQUARE | {"rung": "cpu_naive", "dtype": "bf16"}},
    ],
}


@pytest.fixture(scope="module")
def executable() -> Path:
    """The executable of the build that runs these tests, or of another build in this tree."""
    for folder in (os.environ.get("FEEDRATE_BUILD_DIR"), ROOT / "build/tests", ROOT / "build/release", ROOT / "build/cpu-only"):
        if folder and (Path(folder) / "bin/feedrate").is_file():
            return Path(folder) / "bin/feedrate"
    pytest.skip("feedrate is not built")


@pytest.mark.parametrize("experiment, expected", [
    ("feeding", ["## Which should I use?", "## Headline", "| gpu_ring |"]),
    ("overlap", ["## Pipeline chain", "skipped: strategy pdl needs a GPU", "| ping_pong | "]),
    ("handoff", ["## The answer", "it shares a GPU's memory", "| cached | 1 MiB | "]),
    ("storage", ["## The answer", "| read, sequential, warm page cache | 64 KiB | ", "pageable memory"]),
    ("kernels", ["## The answer", "## Ladder matmul fp32, 96 × 96 × 96, layout nt", "| 4. cpu_packed | panels of a and b",
                 "## Error, matmul fp32, m 96, n 96, layout nt, inputs positive", "multiply fp32, not bf16"]),
])  # fmt: skip
def test_report_reads_measured_rows(executable, tmp_path, figureless, experiment, expected):
    if experiment == "kernels" and not executable.with_name("feedrate_full").is_file():
        pytest.skip("feedrate_full is not built")
    run = {"seconds": 0.05, "repetitions": 2} | ({"messages": 200, "warmup": 0.01} if experiment == "feeding" else {})
    spec = {"name": experiment, "description": "short", "experiment": experiment, "run": run, "parts": SPECS[experiment]}
    (tmp_path / "short.json").write_text(json.dumps(spec))
    words = [executable, "sweep", tmp_path / "short.json", "--device", "cpu", "--floor-rounds", "1", "--keep-disturbed"]
    known = {name: value for name, value in os.environ.items() if not name.startswith("FEEDRATE_")}  # variables of the tests themselves
    ran = subprocess.run([*map(str, words), "--out", tmp_path / "rows"], capture_output=True, text=True, env=known)
    assert ran.returncode == 0, ran.stderr[-2000:]
    checked = subprocess.run([executable, "validate", tmp_path / "rows/rows.jsonl"], capture_output=True, text=True, env=known)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    text = report(tmp_path / "rows")
    assert all(part in text for part in ["these are not GPU results", *expected]), text
