"""What the page of guarantees says in words, of the rows that its tables are made of: a sentence that new rows do not bear
out must be written anew."""

import json
import lzma
import re

import pytest
from conftest import ROOT

from analysis import stats
from analysis.feeding import prices
from analysis.load import load

H200, H100 = ROOT / "results/reference/h200", ROOT / "results/reference/h100"


def runs(folder, name: str) -> list[dict]:
    with lzma.open(folder / f"{name}.jsonl.xz", "rt") as lines:
        return [row for row in map(json.loads, lines) if row["kind"] == "run"]


def io_threads(folder, name: str) -> set[tuple[str, str]]:
    servers = [run["environment"]["redis"]["config"] for run in runs(folder, name)]
    return {(server["io-threads"], server["io-threads-do-reads"]) for server in servers}


def test_the_servers_of_both_tables_have_the_threads_that_the_page_names():
    assert io_threads(H100, "guarantees/rows") == {("4", "yes")}
    for way in ("near", "wire", "far"):
        assert io_threads(H200, f"far_server/{way}") == {("1", "no")}
        assert all(run["environment"]["revision"].startswith("5143e14") for run in runs(H200, f"far_server/{way}"))


def test_only_the_rates_of_packed_messages_were_searched_for():
    spec = json.loads((H100 / "guarantees/spec.json").read_text(encoding="utf-8"))
    searched = {part["name"]: "search" in part for part in spec["parts"]}
    assert searched == {
        "throughput": True, "results effectively once": True, "one message an element": False, "lone messages": False,
    }  # fmt: skip
    assert "The settings of “one message an element”" in prices.NOTE and "were given, and not searched for" in prices.NOTE
    far = json.loads((ROOT / "tests/trials/far_server.json").read_text(encoding="utf-8"))
    assert not any("search" in part for part in far["parts"])


@pytest.fixture(scope="module")
def priced():
    results = load([str(H100 / "guarantees")])
    return results, prices.prices(results).set_index(["measure", "line", "payload"])


def test_who_reaches_what(priced):
    results, found = priced
    goal = {payload: found.loc[("most messages", "redis_reliable", payload)] for payload in (64, 4096)}
    assert goal[4096]["share_low"] > 0.6 and round(goal[64]["share"], 2) == 0.64
    assert (round(goal[64]["share_low"], 2), round(goal[64]["share_high"], 2)) == (0.52, 0.79)
    assert all(point["point"]["pack"] == 64 for point in goal.values())
    assert round(found.loc[("one message an element", "redis_reliable", 64)]["share"], 2) == 0.51
    for payload, reached in ((64, False), (4096, True)):
        point = found.loc[("most messages", "redis_stream", payload)]["point"]
        assert point["workers"] > 1 and (point["messages_per_second_ratio"] > 0.85) == reached
    lone = stats.points(results.closed)
    lone = lone[(lone["queue"] == "redis_list") & (lone["window"] == 1)]
    assert len(lone) == 2 and (lone["latency_ns_ratio"] > 1.15).all()


def changes(log: str, figure: str) -> list[tuple[float, float]]:
    """What the lines of a soak's log say, as (early, late)."""
    text = (ROOT / "results/reference" / log).read_text(encoding="utf-8")
    return [(float(early), float(late)) for early, late in re.findall(figure, text)]


LONE, WORKER = r"lone message ([\d.]+) → ([\d.]+) ms", r"worker ([\d.]+) → ([\d.]+) MiB"
SERVER = r"the server ([\d.]+) → ([\d.]+) MiB"


def test_what_the_soaks_found():
    again = "h100/delivery/soak_again.log"
    assert changes(again, SERVER) == [(2.47, 2.48)] and all(late <= early for early, late in changes(again, WORKER))
    assert max(round(late - early, 2) for early, late in changes(again, LONE)) == 0.04
    for log in ("delivery/soak.log", "h100/delivery/soak.log", again):
        assert len(changes(log, WORKER)) == 5 and all(late - early <= 0.1 for early, late in changes(log, WORKER))
    assert changes("delivery/soak.log", SERVER) == [(2.48, 2.48)]
    longer = [round(late - early, 2) for early, late in changes("delivery/soak.log", LONE)]
    assert (min(longer), max(longer)) == (0.02, 0.11)
    ((early, late),) = changes("h100/delivery/soak.log", SERVER)
    assert 1.9 < late / early < 2.1
    assert all(abs(late - early) <= 0.02 for early, late in changes("h100/delivery/soak.log", LONE))
    for log in ("h100/delivery/soak.log", again):
        on_gpu = changes(log, r"GPU (\d+) → (\d+) MiB")
        assert len(on_gpu) == 5 and all(early == late for early, late in on_gpu)
