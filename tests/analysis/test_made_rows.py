"""The analysis reads what `feedrate` itself measures: blocks and figures of rows that it makes on the CPU device."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT, main

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


@pytest.mark.parametrize("spec, blocks", [
    (TRANSFERS, {"transfers": ["these are not GPU results", "figures/transfers.png", "| 64 B | 16 | "],
                 "batch_timeout": ["figures/batch_timeout.png", "| 2.00 k msg/s | 100 µs |"]}),
    (OVERLAP, {"strategies": ["figures/overlap_strategies.png", "skipped: strategy pdl needs a GPU", "| ping_pong | "],
               "best": ["| chain: most items per second<br>item 4 KiB"], "points": ["| ring | "]}),
    (HANDOFF, {"cheapest": ["figures/handoff_by_size.png", "| first | 1 MiB | "], "ways": ["it shares a GPU's memory"],
               "several": ["figures/handoff_several.png", "| way | 1 reader | 2 readers |"]}),
], ids=lambda one: one.get("name"))  # fmt: skip
def test_blocks_and_figures_of_measured_rows(executable, tmp_path, spec, blocks):
    (tmp_path / "short.json").write_text(json.dumps(spec))
    folder, figures, page = (str(tmp_path / name) for name in ("rows", "figures", "page.md"))
    words = [executable, "sweep", tmp_path / "short.json", "--device", "cpu", "--floor-rounds", "1", "--out", folder]
    ran = subprocess.run(list(map(str, words)), capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr[-2000:]
    assert main(["figures", folder, "--out", figures]) == 0
    for name, said in blocks.items():
        Path(page).write_text(f"<!-- {name}:begin -->\n<!-- {name}:end -->\n")
        assert main(["readme", folder, page, "--block", name, "--figures", figures]) == 0
        text = Path(page).read_text()
        assert all(part in text for part in said), text
