"""The table of what a store's operations cost."""

import json
import re

import pytest
from conftest import ROOT

from analysis.__main__ import main


def wrote(folder, way, **costs):
    some = [{"name": f"{name}/real_time", "real_time": value, "time_unit": "ns"} for name, value in costs.items()]
    (folder / f"{way}.json").write_text(json.dumps({"benchmarks": some}))


def test_a_line_an_operation_and_a_column_a_way(tmp_path, capsys):
    wrote(tmp_path, "pool", store_get_mapped=44_000.0)
    wrote(tmp_path, "vmm", store_get_mapped=31_000.0, store_get_leased=570.0)
    assert main(["store", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "| operation | vmm | pool |"
    assert lines[2] == "| get, when this process has a lease already | 570 ns | — |"
    assert lines[3].endswith("| 31.0 µs | 44.0 µs |")


def test_of_many_at_a_time_each_counts(tmp_path, capsys):
    one = {"name": "store_create_delete_by_list/32/real_time", "real_time": 4e6, "time_unit": "ns", "items_per_second": 8000.0}
    listed = {"name": "store_list/100000/iterations:3/real_time", "real_time": 825.0, "time_unit": "ms"}
    (tmp_path / "vmm.json").write_text(json.dumps({"benchmarks": [one, listed]}))
    assert main(["store", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "| 125 µs |" in out and "| list of 100,000 tensors of 4 KiB | 825 ms |" in out


@pytest.mark.parametrize("text", ["no JSON", "{}", '{"benchmarks": [{"name": "x"}]}'])
def test_what_is_none_is_bad_input(tmp_path, capsys, text):
    (tmp_path / "vmm.json").write_text(text)
    assert main(["store", str(tmp_path)]) == 2
    assert "vmm.json is none" in capsys.readouterr().err


def test_what_the_page_says_of_the_soaks_stands_in_their_logs():
    """In numbers; what was wrong makes a test fail, and both logs end with all tests passed."""
    page = (ROOT / "variants/tensors/README.md").read_text(encoding="utf-8")
    store = ROOT / "results/reference/h200/store"
    short = (store / "soak.log").read_text(encoding="utf-8")
    long = (ROOT / "results/reference/h100/store/soak_long.log").read_text(encoding="utf-8")
    assert "3 passed, 0 failed" in short and "1 passed, 0 failed" in long
    known = float(re.search(r"a death is known after ([\d.]+) ms at most", short)[1])
    assert 140 < known <= 150 and "0.15 s at most" in " ".join(page.split())
    killed = (ROOT / "results/reference/h100/store/soak.log").read_text(encoding="utf-8")
    counts = re.findall(r"^(\d+) (clients|daemons|Redis servers) were killed", killed, re.MULTILINE)
    assert counts == [("200", "clients"), ("21", "daemons"), ("21", "Redis servers")] and "3 passed, 0 failed" in killed
    assert "200 clients, 21 daemons and 21 Redis servers" in " ".join(page.split())
    made, read, wrong = (int(n) for n in re.search(r"most; made (\d+), read (\d+), .* wrong (\d+);", long).groups())
    assert f"for 572 s on an H100 made {made:,} tensors and read {read:,}" in " ".join(page.split()) and wrong == 0
    used = re.findall(r"after \d+ s: .*; (\d+) MiB of the GPU", long)
    assert len(used) == 9 and set(used) == {"7951"}
    costs = json.loads((store / "vmm.json").read_text(encoding="utf-8"))["benchmarks"]
    (overhead,) = (one["memory_overhead"] for one in costs if "memory_overhead" in one)
    assert overhead == pytest.approx(0.065, abs=0.0005)


def test_an_empty_folder_and_a_check_of_nothing_are_bad_input(tmp_path):
    assert main(["store", str(tmp_path)]) == 2
    assert main(["store", str(tmp_path), "--check"]) == 2
