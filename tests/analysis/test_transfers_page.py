"""What the page of transfers says in words, of the rows that its tables are made of: a sentence that new rows do not bear
out must be written anew."""

import json
import lzma

import pandas as pd
import pytest
from conftest import ROOT

from analysis import answer
from analysis.feeding import timeouts, transfers
from analysis.load import load

RATE = transfers.METRIC
KI, MI = 1 << 10, 1 << 20


@pytest.fixture(scope="module")
def results():
    return load([str(ROOT / "results/reference/h100/transfers")])


@pytest.fixture(scope="module")
def ranked(results) -> dict[tuple[int, int], dict[str, pd.Series]]:
    """The transfers at each payload and batch, by name, the best first."""
    found = {}
    for place in transfers.places(results):
        both = [*place.ranked, *([] if place.auto is None else [place.auto])]
        found[place.payload, place.batch] = {point["transfer"]: point for point in both}
    return found


@pytest.fixture(scope="module")
def points(results) -> pd.DataFrame:
    return answer.usable(results.closed)


def rates(points: dict[str, pd.Series]) -> dict[str, float]:
    return {name: point[RATE] for name, point in points.items()}


def test_one_operation_must_serve_many_small_messages(results, ranked):
    floors = results.floors.set_index("name")["value"]
    assert 1e9 / floors["launch_per_second"] == pytest.approx(3e3, rel=0.1)
    assert floors["copy_queued_ns"] == pytest.approx(2.4e3, rel=0.05)
    some = rates(ranked[64, 1])
    assert list(some)[:3] == ["gather", "batched_copy", "graph"]
    assert 8 < some["gather"] / some["batched_copy"] < 9


def test_with_large_batches_two_are_ahead(ranked):
    some = rates(ranked[64, 256])
    assert list(some)[:3] == ["graph", "gather", "batched_copy"]
    assert 1.8 < some["gather"] / some["batched_copy"] < 2 < some["graph"] / some["batched_copy"] < 2.1


def test_with_batches_of_256_a_graph_of_mapped_kernels_is_ahead(points, ranked):
    few = points[(points["payload_bytes"] == 64) & (points["batch"] == 256) & (points["producers"] == 4)]
    said = {1024: {"graph": (85e6, 44e3), "gather": (52e6, 71e3)}, 2048: {"graph": (112e6, 69e3), "gather": (74e6, 107e3)}}
    for window, transfers_at in said.items():
        for name, (rate, p50) in transfers_at.items():
            at = few[(few["window"] == window) & (few["transfer"] == name)]
            best = at.loc[at[RATE].idxmax()]
            assert best[RATE] == pytest.approx(rate, rel=0.01) and best["p50"] == pytest.approx(p50, rel=0.01)
            assert name == "gather" or best["chain"] == "mapped"
    gather = ranked[64, 256]["gather"]
    assert gather["window"] * gather["producers"] == 16384
    assert (round(gather[RATE] / 1e6), round(gather["p50"] / 1e3)) == (101, 152)


def test_at_64_kib_a_message_can_have_an_operation_of_its_own(ranked):
    some = {name: rate * 64 * KI for name, rate in rates(ranked[64 * KI, 1]).items()}
    assert some["batched_copy"] == pytest.approx(41e9, rel=0.01) and some["graph"] == pytest.approx(36e9, rel=0.01)
    assert ranked[64 * KI, 1]["graph"]["chain"] == "mapped" and some["pinned"] < 0.5 * some["graph"]


def test_large_copies_go_several_at_a_time(results, points):
    engines = results.floors.set_index("name")["value"]["copy_engine_both_bytes_per_second"]
    assert engines == pytest.approx(49e9, rel=0.01)
    large = points[(points["touch"] == "stamp") & (points["transfer"] == "batched_copy")]
    assert set(large["payload_bytes"]) == {MI, 4 * MI}
    reached = (large["bytes_per_second"] / engines).round(2)
    assert (reached.min(), reached.max()) == (0.95, 1.0)


def test_at_1_mib_every_search_began_within_the_caches(ranked):
    with lzma.open(ROOT / "results/reference/h100/transfers/rows.jsonl.xz", "rt") as lines:
        rows = [row for row in map(json.loads, lines) if row["kind"] == "cell" and "search" in row]
    tries = [row["params"] for row in rows if row["params"]["payload_bytes"] == MI]
    assert {one["window"] for one in tries} == {16}
    firsts = [row["params"] for row in rows if row["search"]["try"] == 0 and row["params"]["payload_bytes"] == MI]
    assert {one["window"] * one["producers"] for one in firsts} == {32}
    some = [rate for name, rate in rates(ranked[MI, 1]).items() if name != "auto"]
    assert round(some[0] * MI / 1e9, 1) == 48.6 and round(some[0] / some[1], 2) == 1.19


def test_auto_is_a_good_choice_where_the_table_has_it(results, ranked):
    for place in transfers.places(results):
        small = place.payload * place.batch <= 16 * KI  # bytes of a batch
        assert place.chosen == ("gather" if small else "batched_copy")
        best = max(rate for name, rate in rates(ranked[place.payload, place.batch]).items() if name != "auto")
        assert 0.795 < place.auto[RATE] / best < 1.005


def test_a_graph_of_copies_beats_the_same_copies_one_by_one(points):
    same = points[(points["batch"] == 1) & (points["window"] == 256) & (points["workers"] == 1)]
    rate = {(one["payload_bytes"], one["transfer"], one["chain"]): one[RATE] for one in same.to_dict("records")}
    for chain, least, most in (("copies", 1.7, 2.3), ("mapped", 3.9, 6.6)):
        ratios = [
            round(rate[payload, "graph", chain] / next(value for key, value in rate.items() if key[:2] == (payload, "pinned")), 1)
            for payload in (64, 256, KI, 4 * KI)
        ]
        assert (min(ratios), max(ratios)) == (least, most)


def test_long_phases_reach_the_copy_engines(results):
    with lzma.open(ROOT / "results/reference/h200/transfers/large.jsonl.xz", "rt") as lines:
        cells = [row for row in map(json.loads, lines) if row["kind"] == "cell"]
    reached = [round(cell["figures"]["bytes_per_second"] / 1e9, 1) for cell in cells]
    assert len(cells) == 5 and (min(reached), max(reached)) == (49.4, 49.6)
    assert all(round(cell["bounds"]["bytes_per_second"]["ratio"], 2) in (0.98, 0.99) for cell in cells)
    assert all(cell["bounds"]["bytes_per_second"]["floor"] == "copy_engine_both_bytes_per_second" for cell in cells)


def test_a_lone_message_needs_the_fewest_operations(points):
    lone = points[(points["window"] == 1) & (points["payload_bytes"] == 64)]
    p50 = {(one["transfer"], one["chain"]): one["p50"] for one in lone.to_dict("records")}
    graph = next(value for (name, chain), value in p50.items() if (name, chain) == ("graph", "mapped"))
    mapped = next(value for (name, _), value in p50.items() if name == "mapped")
    assert min(p50.values()) == graph and graph / mapped == pytest.approx(0.8, abs=0.03)


def test_gather_with_one_worker_is_at_its_limit():
    with lzma.open(ROOT / "results/reference/h100/transfers/rows.jsonl.xz", "rt") as lines:
        rows = [row for row in map(json.loads, lines) if row["kind"] == "cell"]
    ok = {}
    for row in rows:
        params = row["params"]
        if params.get("rate") == 40e6 and params["queue"] == "host_polled":
            ok.setdefault(params["batch_timeout_us"], []).append(row["status"] == "ok")
    assert {held: (sum(each), len(each)) for held, each in ok.items()} == {0: (0, 3), 5: (1, 3), 20: (1, 3), 100: (1, 3)}


def test_holding_back_costs_what_it_says(results):
    for line in timeouts.in_order(timeouts.lines(results)):
        at_once, longest = line.iloc[0], line.iloc[-1]
        assert (at_once[timeouts.AXIS], longest[timeouts.AXIS]) == (0, 100)
        if at_once["rate"] > 10e6:
            continue
        assert 48.5e3 < longest["p50"] - at_once["p50"] < 65.5e3
        assert (line["state"] == timeouts.open_load.SUSTAINED).all()
