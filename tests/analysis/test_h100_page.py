"""What the page of the H100 says in words and in the tables that no command makes, of its rows."""

import json
import lzma
import re
import statistics
import subprocess
import sys
from collections import defaultdict

import pytest
from conftest import ROOT

from analysis.__main__ import main

H100 = ROOT / "results/reference/h100"
PAGE = (H100 / "README.md").read_text(encoding="utf-8")


def ratios(run: str) -> dict[tuple, list[float]]:
    """Of the floor that binds a point's bytes, by the point; rows that the load generator limited have None."""
    found = defaultdict(list)
    with lzma.open(H100 / "large" / run / "rows.jsonl.xz", "rt") as lines:
        for row in map(json.loads, lines):
            if row["kind"] != "cell" or row["status"] == "skipped":
                continue
            params = row["params"]
            name = params["queue"] if params["transfer"] == "none" else params["transfer"]
            point = (params["workload"], name, params["payload_bytes"] >> 20, params["window"], params.get("streams"))
            limited = row["cause"] == "driver_bound"
            found[point].append(None if limited else row["bounds"]["bytes_per_second"]["ratio"])
    return found


def test_large_copies():
    second, first = ratios("second"), ratios("first")
    rows = re.findall(r"^\| (\d+) MiB \| (\d+) \| (\d+) % \| (\d+) % \| (\d+) % \|$", PAGE, re.MULTILINE)
    assert len(rows) == 4
    for size, window, *told in rows:
        points = [("pinned", 4), ("pinned", 8), ("batched_copy", 4)]
        all_of = [second["echo", name, int(size), int(window), streams] for name, streams in points]
        assert all(3 <= len(values) <= 4 for values in all_of)
        assert [int(one) for one in told] == [round(100 * statistics.median(values)) for values in all_of]
    assert sum(map(len, second.values())) == 65 and "65 of 95" in PAGE
    percents = {key: round(100 * statistics.median(values)) for key, values in first.items() if key[0] == "echo"}

    def told_of(name: str, *sizes: int) -> tuple[int, int]:
        those = [value for (_, one, size, _, _), value in percents.items() if one == name and size in sizes]
        return min(those), max(those)

    assert told_of("pinned", 4) == (89, 90)
    assert told_of("pinned", 16) == (94, 95) and told_of("batched_copy", 4, 16) == (93, 96)


def test_a_workload_that_computes_is_not_limited_by_the_load_generator():
    second = {key: values for key, values in ratios("second").items() if key[0] == "fma_chain"}
    assert len(second) == 3 and all(None not in values for values in second.values())
    percents = {name: round(100 * statistics.median(values)) for (_, name, *_), values in second.items()}
    assert percents == {"gpu_ring": 100, "graph": 87, "pinned": 82}
    first = [value for key, values in ratios("first").items() if key[0] == "fma_chain" for value in values]
    assert (len(first), first.count(None)) == (10, 6)


def test_old_code_against_new():
    words = [sys.executable, "tests/trials/alternate.py"]
    told = [
        subprocess.run([*words, H100 / "alternate" / run], cwd=ROOT, capture_output=True, text=True, check=True).stdout
        for run in ("first", "second")
    ]
    assert f"```\n{told[1]}```" in PAGE
    assert re.findall(r"old ([\d.]+)", told[0]) == ["1.055", "1.014", "0.966"] and told[0].count("n=6") == 3


def test_the_second_run_of_quick_misses_one_peak(capsys):
    assert main(["ranks", str(H100 / "quick/b"), str(ROOT / "results/reference/h200")]) == 1
    said = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("Not as they should be"))
    assert said == "Not as they should be: peak messages: redis_stream + pinned reaches 60%."


@pytest.mark.parametrize("run", ["a", "b"])
def test_the_ring_reaches_the_bus_with_64_kib(run):
    with lzma.open(H100 / "quick" / run / "rows.jsonl.xz", "rt") as lines:
        rows = [row for row in map(json.loads, lines) if row["kind"] == "cell" and "search" not in row]
    ring = [
        row["figures"]["bytes_per_second"]
        for row in rows
        if row["params"]["queue"] == "gpu_ring" and row["params"]["payload_bytes"] == 65536 and "figures" in row
    ]
    assert max(ring) > 42e9
