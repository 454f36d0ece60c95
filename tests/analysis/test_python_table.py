"""The table of what Python's ring reaches: a figure says what it is the median of."""

import importlib.util
import json
from statistics import median

import pytest
from conftest import ROOT

SPEC = importlib.util.spec_from_file_location("python_table", ROOT / "python/benchmarks/table.py")
python_table = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(python_table)


def tensor(size: int, p50: float) -> dict:
    return {"figure": "tensors", "bytes": size, "p50_us": p50, "over_the_host_p50_us": 80.0}


def line(some: list[dict]) -> list[str]:
    (found,) = (one for one in python_table.lines({"tensors": some}) if "tensor" in one[0])
    return found


def test_tensors_of_several_sizes_have_the_figure_of_the_least_one_which_is_named():
    some = [tensor(65536, 95.1), tensor(4096, 90.0), tensor(4096, 94.0), tensor(4096, 99.0), tensor(1 << 20, 131.0)]
    name, value, each = line(some)
    assert (name, value) == ("a GPU tensor of 4 KiB by address, p50", "94 µs")
    assert "64 KiB: 95 µs" in each and "1024 KiB: 131 µs" in each


def test_tensors_that_broke_are_told():
    assert line([{"figure": "tensors", "error": "no GPU"}]) == [
        "a GPU tensor by address, p50", "—", " **broke: no GPU**",
    ]  # fmt: skip


def test_a_median_has_the_digits_of_its_runs():
    rates = [{"figure": "views", "messages_per_second": rate} for rate in (35.5e6, 39.568e6, 46.4e6)]
    (found,) = (one for one in python_table.lines({"views": rates}) if one[0].startswith("blocks of 64 B"))
    assert found[1:] == ["39.6 M/s", "35.5 M/s, 39.6 M/s, 46.4 M/s"]


def test_what_the_page_says_of_the_committed_rows():
    rows = [json.loads(line) for line in (ROOT / "results/reference/h200/python/ring.jsonl").read_text().splitlines()]
    waited = [row for row in rows if "collector_waits" in row]
    (other,) = (row for row in waited if row["collector_waits"] >= row["producer_waits"])
    assert len(waited) == 13 and other["figure"] == "watchdog, 0.1 s"
    assert (round(other["collector_waits"], 2), round(other["producer_waits"], 2)) == (0.39, 0.34)
    blocks = median(row["messages_per_second"] for row in rows if row["figure"] == "views")
    tasks = median(row["round_trips_per_second"] for row in rows if row["figure"] == "asyncio")
    assert (blocks, tasks) == (pytest.approx(39.6e6, abs=5e4), pytest.approx(147e3, abs=500))
    assert (round(100 * (1 - blocks / 40e6)), round(100 * (1 - tasks / 150e3))) == (1, 2)
