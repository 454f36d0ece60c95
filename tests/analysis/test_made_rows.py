"""The blocks and figures of `transfers`, `overlap` and `handoff` from rows that `feedrate` itself makes on the CPU device."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT

from analysis.__main__ import main

TRANSFERS = {
    "name": "transfers",
    "description": "short",
    "run": {"seconds": 0.02, "warmup": 0.01, "repetitions": 2},
    "parts": [
        {
            "name": "best by payload and batch",
            "axes": {"queue": "host_polled", "transfer": ["pinned", "gather", "auto"], "payload": 64, "batch": [1, 16],
                     "producers": 1, "workers": 1, "streams": 2, "coalesce": 8},
            "search": {"goal": "messages_per_second", "seconds": 0.1, "axes": {"window": [16, 64]}},
        },
        {
            "name": "batches held back",
            "axes": {"queue": ["host_polled", "gpu_ring"], "transfer": "gather", "payload": 64, "window": 256,
                     "batch": 16, "batch-timeout": [0, 100], "producers": 1, "arrivals": "poisson", "rate": 2000},
        },
    ],
}  # fmt: skip
ITEM = {"pipeline": "chain", "stages": 3, "item": "4Ki", "items": 8, "cost-us": 20}
OVERLAP = {
    "name": "overlap",
    "description": "short",
    "experiment": "overlap",
    "run": {"seconds": 0.02, "repetitions": 2},
    "parts": [
        {"name": "strategies", "axes": ITEM | {"strategy": ["serial", "ping_pong", "ring", "graph", "pdl"]}},
        {"name": "balance", "axes": ITEM | {"strategy": ["ping_pong", "ring"], "balance": ["even", "first"]}},
        {"name": "depth", "axes": ITEM | {"strategy": ["ring", "graph"], "depth": [1, 3]}},
    ],
}
HANDOFF = {
    "name": "handoff",
    "description": "short",
    "experiment": "handoff",
    "run": {"seconds": 0.02, "repetitions": 2},
    "parts": [
        {
            "name": "size",
            "axes": {"way": ["shm_copy", "ipc_memfd", "ipc_vmm"], "bytes": ["4Ki", "1Mi"], "use": ["cached", "first"]},
        },
        {"name": "readers", "axes": {"way": ["shm_copy", "ipc_memfd"], "bytes": "1Mi", "readers": [1, 2]}},
    ],
}


@pytest.fixture(scope="module")
def executable() -> Path:
    """The one that the tests which run this were built with."""
    for folder in (os.environ.get("FEEDRATE_BUILD_DIR"), ROOT / "build/release", ROOT / "build/cpu-only"):
        if folder and (Path(folder) / "bin/feedrate").is_file():
            return Path(folder) / "bin/feedrate"
    pytest.skip("no build of feedrate")


def swept(executable: Path, folder: Path, spec: dict) -> Path:
    (folder / "short.json").write_text(json.dumps(spec))
    words = [executable, "sweep", folder / "short.json", "--device", "cpu", "--floor-rounds", "1", "--out", folder / "rows"]
    ran = subprocess.run(list(map(str, words)), capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr[-2000:]
    return folder / "rows"


def block(folder: Path, name: str) -> str:
    page = folder.parent / f"{name}.md"
    page.write_text(f"<!-- {name}:begin -->\n<!-- {name}:end -->\n")
    assert main(["readme", str(folder), str(page), "--block", name, "--figures", str(folder.parent / "figures")]) == 0
    return page.read_text()


@pytest.fixture(scope="module")
def transfers(executable, tmp_path_factory) -> Path:
    folder = swept(executable, tmp_path_factory.mktemp("transfers"), TRANSFERS)
    assert main(["figures", str(folder), "--out", str(folder.parent / "figures")]) == 0
    return folder


@pytest.fixture(scope="module")
def overlap(executable, tmp_path_factory) -> Path:
    folder = swept(executable, tmp_path_factory.mktemp("overlap"), OVERLAP)
    assert main(["figures", str(folder), "--out", str(folder.parent / "figures")]) == 0
    return folder


def test_the_best_transfers(transfers):
    text = block(transfers, "transfers")
    assert "these are not GPU results" in text and "figures/transfers.png" in text
    lines = [line.split(" | ") for line in text.splitlines() if line.startswith("| 64 B |")]
    assert [line[1] for line in lines] == ["1", "16"]
    for line in lines:
        best, after = line[2].split("<br>")[0], line[5].split("<br>")[0]
        assert {best, after} == {"gather", "pinned"} and "window" in line[2] and line[8] == "pinned"


def test_batches_held_back(transfers):
    text = block(transfers, "batch_timeout")
    lines = [line.split(" | ") for line in text.splitlines() if line.startswith("| 64 B |")]
    assert [line[3] for line in lines] == ["0", "100 µs"] * 2 and {line[2] for line in lines} == {"2.00 k msg/s"}
    assert "figures/batch_timeout.png" in text


def test_strategies(overlap):
    text = block(overlap, "strategies")
    names = [line.split(" | ")[0].removeprefix("| ") for line in text.splitlines() if line.startswith("| ")]
    assert names == ["strategy", "serial", "ping_pong", "ring", "graph", "pdl"]
    assert "skipped: strategy pdl needs a GPU" in text and "decode " in text
    assert "figures/overlap_strategies.png" in text
    best = block(overlap, "best")
    assert "| chain: most items per second<br>item 4 KiB" in best
    assert "| ring | " in block(overlap, "points")


@pytest.fixture(scope="module")
def handoff(executable, tmp_path_factory) -> Path:
    folder = swept(executable, tmp_path_factory.mktemp("handoff"), HANDOFF)
    assert main(["figures", str(folder), "--out", str(folder.parent / "figures")]) == 0
    return folder


def test_the_cheapest_hand_off(handoff):
    text = block(handoff, "cheapest")
    assert "these are not GPU results" in text and "figures/handoff_by_size.png" in text
    lines = [line.split(" | ") for line in text.splitlines() if line.startswith(("| cached |", "| first |"))]
    assert [line[1] for line in lines] == ["4 KiB", "1 MiB"] * 2
    for line in lines:
        assert {line[2].split("<br>")[0], line[5].split("<br>")[0]} == {"ipc_memfd", "shm_copy"}


def test_what_a_hand_off_costs(handoff):
    text = block(handoff, "ways")
    assert "| shm_copy | " in text and "| ipc_memfd | " in text and "it shares a GPU's memory" in text
    assert "figures/handoff_several.png" in block(handoff, "several")
