"""The committed results: every row is valid, every published block is what the rows give, and all of it stays small."""

import json
import lzma
import subprocess
from functools import cache

import pytest
from conftest import ROOT

from analysis import catalogue
from analysis.__main__ import main

REFERENCE = ROOT / "results/reference"
H100, H200 = REFERENCE / "h100", REFERENCE / "h200"
MOST = 10_000_000  # bytes of all that is committed there, figures included; 8 MB of them of `feeding` before `transfers`
FOLDERS = sorted(file.parent for file in REFERENCE.rglob("rows.jsonl*"))
PAGE, QUICK = H200 / "README.md", H200 / "quick/README.md"
LAUNCH = ROOT / "experiments/launch/README.md"
STORE = ROOT / "variants/tensors/README.md"
HANDOFF = ROOT / "experiments/handoff/README.md"
TRANSFERS = ROOT / "variants/transfers/README.md"
OVERLAP = ROOT / "experiments/overlap/README.md"
TRACES, PROFILING = H200 / "overlap/traces", ROOT / "analysis/profiling.md"
ANALYSIS = ROOT / "analysis/README.md"
NOTE = ROOT / "variants/queues/gpu_ring.md"
GUARANTEES = ROOT / "common/redis/guarantees.md"
BLOCKS = {
    "figures": ["readme", H200, PAGE, "--figures", H200 / "figures"],
    "answer": ["readme", H200 / "quick/a", PAGE, "--block", "answer"],
    "ranks": ["ranks", H200 / "quick/a", H200, "--page", PAGE],
    "ring": ["readme", H200 / "ring", PAGE, "--block", "ring"],
    "one_pair": ["readme", H200 / "one_pair", PAGE, "--block", "one_pair"],
    "load": ["readme", H200 / "load", PAGE, "--block", "load", "--figures", H200 / "load/figures"],
    "capacity": ["readme", H200 / "capacity", PAGE, "--block", "capacity", "--figures", H200 / "capacity/figures"],
    "aa": ["aa", H200 / "aa/a", H200 / "aa/b", "--readme", PAGE],
    "power": ["power", H200 / "aa/a", H200 / "aa/b", H200 / "quick/a", H200 / "quick/b", "--readme", ANALYSIS],
    "axes": ["ring", H200 / "ring", "--out", H200 / "ring/figures", "--note", NOTE],
    "launch: best": ["readme", H200 / "launch", LAUNCH, "--block", "best"],
    "launch: points": ["readme", H200 / "launch", LAUNCH, "--block", "points"],
    "quick: answer": ["readme", H200 / "quick/b", QUICK, "--block", "answer"],
    "faults": ["faults", REFERENCE / "delivery/faults.jsonl", "--readme", GUARANTEES],
    "faults_gpu": ["faults", H100 / "delivery/faults.jsonl", "--readme", GUARANTEES, "--block", "faults_gpu"],
    "prices": ["readme", H100 / "guarantees", GUARANTEES, "--block", "prices", "--figures", H100 / "guarantees/figures"],
    "h100: answer": ["readme", H100 / "quick/a", H100 / "README.md", "--block", "answer"],
    "h100: ranks": ["ranks", H100 / "quick/a", H200, "--page", H100 / "README.md"],
    "quick: ranks": ["ranks", H200 / "quick/b", H200 / "quick/a", "--page", QUICK],
}
BLOCKS["nsys"] = ["beside", TRACES / "ring.json.xz", TRACES / "ring.gputrace.csv.xz", "--page", PROFILING]
BLOCKS |= {
    f"overlap: {name}": [
        "readme", H200 / "overlap", OVERLAP, "--block", name, "--figures", H200 / "overlap/figures",
    ]
    for name in ("strategies", "by_depth", "by_item", "by_balance")
}  # fmt: skip
BLOCKS["costs"] = ["store", H200 / "store", "--page", STORE]
BLOCKS["torch"] = ["torch", H200 / "handoff/torch_shared.jsonl", "--page", HANDOFF]
BLOCKS |= {
    f"handoff: {name}": [
        "readme", H200 / "handoff", HANDOFF, "--block", name, "--figures", H200 / "handoff/figures",
    ]
    for name in ("cheapest", "ways", "several", "two_gpus")
}  # fmt: skip
BLOCKS |= {
    f"transfers: {name}": [
        "readme", H100 / "transfers", TRANSFERS, "--block", name, "--figures", H100 / "transfers/figures",
    ]
    for name in ("answer", "transfers", "batch_timeout")
}  # fmt: skip


@cache
def read(folder) -> list[dict]:
    return [json.loads(line) for line in lzma.decompress((folder / "rows.jsonl.xz").read_bytes()).splitlines()]


def histograms(value):
    """Every histogram within a row; that its lists are as long as each other is more than a schema can say."""
    if isinstance(value, dict):
        if "counts" in value and ("steps" in value or "index" in value):
            yield value
        for one in value.values():
            yield from histograms(one)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: str(folder.relative_to(REFERENCE)))
def test_every_committed_row_is_valid_and_names_its_run(schema, folder):
    some = read(folder)
    runs = {row["id"] for row in some if row["kind"] == "run"}
    for row in some:
        schema.validate(row)
        assert row["kind"] == "run" or row["run"] in runs
        for told in histograms(row):
            assert len(told["counts"]) == len(told["steps" if "steps" in told else "index"])
    assert runs == {row["run"] for row in some if row["kind"] != "run"}


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: str(folder.relative_to(REFERENCE)))
def test_the_catalogue_beside_the_rows_knows_all_that_they_name(folder):
    known = catalogue.merged([catalogue.read(folder, "DIR")])
    for row in read(folder):
        if row["kind"] == "floor":
            assert row["floor"]["name"] in known.floors
        elif row["kind"] != "run":
            experiment = known.experiments[row["experiment"]]
            assert row["params"].keys() <= experiment.axes.keys()
            assert row.get("figures", {}).keys() <= experiment.figures.keys()
            assert all(experiment.applies(axis, row["params"]) for axis in row["params"])


@pytest.mark.parametrize("arguments", BLOCKS.values(), ids=BLOCKS.keys())
def test_every_published_block_is_what_the_rows_give(arguments, capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    words = [str(word.relative_to(ROOT)) if hasattr(word, "relative_to") else word for word in arguments]
    main([*words, "--check"])  # ranks also exits with 1 where a search missed something, as its page says
    assert "is not what the rows" not in capsys.readouterr().err


def test_the_committed_results_stay_small():
    listed = subprocess.run(["git", "ls-files", "-z", str(REFERENCE)], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("no git checkout")
    names = [name for name in listed.stdout.split("\0") if name and (ROOT / name).exists()]
    sizes = {name: (ROOT / name).stat().st_size for name in names}
    assert sizes and sum(sizes.values()) < MOST, sorted(sizes.items(), key=lambda one: -one[1])[:10]
