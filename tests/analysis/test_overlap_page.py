"""What the page of `overlap` says in words, of the rows that its tables are made of: a sentence that new rows do not bear
out must be written anew."""

import pandas as pd
import pytest
from conftest import ROOT

from analysis.load import load
from analysis.overlap import along, axes, points

SMALL, MIDDLE, USUAL = 4 << 10, 64 << 10, 1 << 20
OVERLAPPING = ("ping_pong", "ring", "graph", "persistent")


@pytest.fixture(scope="module")
def results():
    return load([str(ROOT / "results/reference/h200/overlap")], experiment="overlap")


@pytest.fixture(scope="module")
def measured(results) -> pd.DataFrame:
    return points.read(results)


def at(measured: pd.DataFrame, strategies, **setting) -> pd.DataFrame:
    """The points of the strategies at the setting, with the standard depth unless another is asked for."""
    setting = {"balance": "even"} | setting
    found = measured[measured["strategy"].isin([strategies] if isinstance(strategies, str) else strategies)]
    found = found if "depth" in setting else found[found["depth"].isin((0, 3))]
    for axis, value in setting.items():
        found = found[found[axis] == value]
    assert len(found)
    return found


def times(results, measured, size: int, pipeline: str) -> dict[str, float]:
    return along.item_times(results, at(measured, ("ping_pong", "ring", "graph"), item_bytes=size, pipeline=pipeline))


def test_two_streams_with_one_buffer_overlap_nothing(measured):
    assert at(measured, "two_stream", item_bytes=USUAL)["speedup"].between(0.95, 1.05).all()


def test_what_overlaps_saves_more_than_95_percent(measured):
    found = at(measured, OVERLAPPING, item_bytes=USUAL)
    assert found["pipeline"].nunique() == 3 and (found[points.EFFICIENCY] > 0.95).all()
    for balance in axes.BALANCES:
        found = at(measured, OVERLAPPING, item_bytes=USUAL, balance=balance)
        assert set(found["strategy"]) == set(OVERLAPPING) and (found[points.EFFICIENCY] > 0.95).all()


def test_one_buffer_saves_about_half_and_more_than_two_change_nothing(measured):
    one, two = (at(measured, "ring", item_bytes=USUAL, pipeline="chain", depth=depth) for depth in (1, 2))
    assert one[points.EFFICIENCY].between(0.4, 0.6).all()
    for depth in (3, 4, 8):
        more = at(measured, "ring", item_bytes=USUAL, pipeline="chain", depth=depth)
        assert more["speedup"].iloc[0] == pytest.approx(two["speedup"].iloc[0], rel=0.03)


def test_pdl_overlaps_no_work(measured):
    for size in (USUAL, 16 << 20):
        assert (at(measured, "pdl", item_bytes=size)[points.EFFICIENCY] < 0.05).all()
    assert at(measured, "pdl", item_bytes=MIDDLE, pipeline="chain")["speedup_high"].iloc[0] < 1


def test_the_host_bounds_strategies_on_streams_with_short_kernels(measured):
    assert (at(measured, ("ping_pong", "ring"), item_bytes=SMALL, pipeline="chain")["speedup"] < 1).all()
    assert at(measured, "ring", item_bytes=SMALL, pipeline="chain")["speedup_high"].iloc[0] < 1
    assert at(measured, "ping_pong", item_bytes=SMALL, pipeline="chain")["speedup_high"].iloc[0] > 1
    assert (at(measured, ("ping_pong", "ring"), item_bytes=MIDDLE)["speedup"] > 1).all()
    for size, pipeline, times_as_fast in ((SMALL, "chain", 2), (SMALL, "copy_process_copy", 2), (MIDDLE, "chain", 1)):
        ring = at(measured, "ring", item_bytes=size, pipeline=pipeline)["speedup"].iloc[0]
        others = at(measured, ("graph", "persistent"), item_bytes=size, pipeline=pipeline)["speedup"]
        assert (others > times_as_fast * ring).all()


def test_short_stages_beside_each_other_take_the_time_of_three_launches(results, measured):
    some = at(measured, OVERLAPPING, item_bytes=SMALL, pipeline="chain")
    launches = 3e9 / results.floors.loc[results.floors["name"] == "launch_per_second", "value"].median()
    for members in some["members"]:
        for stages in results.cells.loc[members, "stages_told"]:
            beside = [stage["contended_ns"] for stage in stages]
            assert len(beside) == 3 and max(beside) < 1.02 * min(beside)
            assert max(beside) > 2 * max(stage["alone_ns"] for stage in stages)
            assert max(beside) == pytest.approx(launches, rel=0.35)


def test_there_the_ideal_is_about_what_serial_takes(results, measured):
    found = times(results, measured, SMALL, "chain")
    assert found[along.BESIDE] == pytest.approx(found[along.SERIAL], rel=0.25)
    cells = results.cells
    some = cells[(cells["item_bytes"] == SMALL) & (cells["pipeline"] == "chain") & (cells["status"] == "ok")]
    assert (some["no_saving"].map(len) > 0).mean() > 0.5
    assert (at(measured, "graph", item_bytes=SMALL, pipeline="chain")["speedup"] > 2).all()
    assert (at(measured, ("graph", "persistent"), item_bytes=MIDDLE, pipeline="chain")[points.EFFICIENCY] > 1).all()


def test_longer_kernels_are_bound_by_the_gpu(results, measured):
    for size in (USUAL, 16 << 20):
        for pipeline in ("chain", "copy_process_copy"):
            found = times(results, measured, size, pipeline)
            assert found[along.BESIDE] < 1.2 * found[along.ALONE]


def test_two_gpus_copy_large_items_at_nearly_the_rate_of_bare_copies(results):
    bare = results.floors.loc[results.floors["name"] == "peer_copy_bytes_per_second", "value"].median()
    cells = results.cells[results.cells["strategy"].str.startswith("peer") & (results.cells["status"] == "ok")]
    shares = (cells["bytes_per_second"] / bare).groupby([cells["strategy"], cells["item_bytes"]]).median()
    assert shares["peer_copy", 16 << 20] > 0.9 and shares["peer_copy", 64 << 20] > 0.9
    assert 0.15 < shares["peer_copy", 1 << 20] < 0.25
    assert 0.5 < shares["peer_load", 16 << 20] < 0.6 and 0.5 < shares["peer_load", 64 << 20] < 0.6
    assert (cells["speedup"] < 1).all()
