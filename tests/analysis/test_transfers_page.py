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
    return load([str(ROOT / "results/reference/h200/transfers")])


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
    assert 1e9 / floors["launch_per_second"] == pytest.approx(4e3, rel=0.1)
    assert floors["copy_queued_ns"] == pytest.approx(2.5e3, rel=0.05)
    some = rates(ranked[64, 1])
    assert list(some)[:3] == ["gather", "graph", "batched_copy"]
    assert some["gather"] == pytest.approx(8 * some["graph"], rel=0.1)


def test_with_large_batches_the_difference_is_small(ranked):
    some = rates(ranked[64, 256])
    assert sum(rate > max(some.values()) / 1.3 for name, rate in some.items() if name != "auto") == 3


def test_with_batches_of_256_a_graph_of_mapped_kernels_is_ahead(points, ranked):
    some = rates(ranked[64, 256])
    assert max(some, key=some.get) == "graph" and ranked[64, 256]["graph"]["chain"] == "mapped"
    few = points[(points["payload_bytes"] == 64) & (points["batch"] == 256) & (points["producers"] == 4)]
    said = {1024: {"graph": (75e6, 49e3), "gather": (44e6, 85e3)}, 2048: {"graph": (97e6, 80e3), "gather": (64e6, 123e3)}}
    for window, transfers_at in said.items():
        for name, (rate, p50) in transfers_at.items():
            at = few[(few["window"] == window) & (few["transfer"] == name)]
            best = at.loc[at[RATE].idxmax()]
            assert best[RATE] == pytest.approx(rate, rel=0.01) and best["p50"] == pytest.approx(p50, rel=0.01)


def test_at_64_kib_a_message_can_have_an_operation_of_its_own(ranked):
    some = {name: rate * 64 * KI for name, rate in rates(ranked[64 * KI, 1]).items()}
    assert some["graph"] == pytest.approx(34e9, rel=0.01) and ranked[64 * KI, 1]["graph"]["chain"] == "mapped"
    assert some["auto"] > some["graph"] and some["pinned"] < 0.5 * some["graph"]


def test_large_copies_go_several_at_a_time(results, points, ranked):
    floors = results.floors.set_index("name")["value"]
    engines = floors["copy_engine_both_bytes_per_second"]
    assert engines == pytest.approx(50e9, rel=0.02)
    large = points[(points["touch"] == "stamp") & (points["transfer"] == "batched_copy")]
    assert set(large["payload_bytes"]) == {MI, 4 * MI}
    assert (large["bytes_per_second"] > 0.9 * engines).all()
    assert ranked[MI, 1]["batched_copy"]["bytes_per_second"] < 0.5 * engines < ranked[MI, 1]["auto"]["bytes_per_second"]


def test_auto_is_a_good_choice_where_the_table_has_it(results, ranked):
    for place in transfers.places(results):
        small = place.payload * place.batch <= 16 * KI  # bytes of a batch
        assert place.chosen == ("gather" if small else "batched_copy")
        best = max(rate for name, rate in rates(ranked[place.payload, place.batch]).items() if name != "auto")
        auto = place.auto[RATE] / best
        assert auto > (1 if place.payload >= 4 * KI else 0.8)
    large = rates(ranked[64 * KI, 1])
    assert large["auto"] / large["batched_copy"] == pytest.approx(4.1, abs=0.05)


def test_the_searches_had_no_coalesce_by_itself():
    with lzma.open(ROOT / "results/reference/h200/transfers/rows.jsonl.xz", "rt") as lines:
        rows = [row for row in map(json.loads, lines) if row["kind"] == "cell" and "search" in row]
    together = [row for row in rows if row["params"]["transfer"] in ("gather", "batched_copy", "graph")]
    assert together and all(row["params"]["coalesce"] != 0 for row in together)
    assert all(row["params"]["coalesce"] == 1 for row in together if row["search"]["try"] == 0)


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


def test_holding_back_costs_what_it_says(results):
    for line in timeouts.in_order(timeouts.lines(results)):
        at_once, longest = line.iloc[0], line.iloc[-1]
        assert (at_once[timeouts.AXIS], longest[timeouts.AXIS]) == (0, 100)
        if at_once["rate"] > 10e6:
            continue
        assert 44.5e3 < longest["p50"] - at_once["p50"] < 67.5e3
        assert (line["state"] == timeouts.open_load.SUSTAINED).all()
