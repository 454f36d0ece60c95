"""What the page of `launch` says in words, of the rows that its tables are made of: a sentence that new rows do not bear
out must be written anew."""

import pandas as pd
import pytest
from conftest import ROOT

from analysis import stats
from analysis.load import load

RATE, ROUND_TRIP, CALL = "kernels_per_second", "p50", "call_p50"
PAGE = (ROOT / "experiments/launch/README.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def measured() -> pd.DataFrame:
    found = stats.points(load([str(ROOT / "results/reference/h200/launch")], experiment="launch"))
    return found.set_index(["form", "kernels", "streams", "threads"])


def at(measured: pd.DataFrame, form: str, kernels: int = 1, streams: int = 1, threads: int = 1) -> pd.Series:
    return measured.loc[(form, kernels, streams, threads)]


def overlap(one: pd.Series, other: pd.Series, column: str) -> bool:
    return one[f"{column}_low"] <= other[f"{column}_high"] and other[f"{column}_low"] <= one[f"{column}_high"]


def test_a_graph_of_many_kernels(measured):
    for kernels, call in ((64, 34), (256, 13)):
        one = at(measured, "graph", kernels)
        assert one[CALL] == pytest.approx(call, rel=0.02) and 1e9 / one[RATE] == pytest.approx(700, rel=0.03)
    on_one_stream = measured[(measured.index.get_level_values("threads") == 1)]
    assert on_one_stream[RATE].max() == pytest.approx(1.46e6, rel=0.01)
    together = [at(measured, "graph", kernels, threads=8) for kernels in (16, 64)]
    assert overlap(*together, RATE) and all(one[RATE] == pytest.approx(5.8e6, rel=0.02) for one in together)
    assert measured[RATE].max() == max(one[RATE] for one in together)


def test_threads_that_launch_together(measured):
    plain = measured.loc["plain"][RATE]
    assert plain.xs(1, level="threads").max() == pytest.approx(250e3, rel=0.02)
    assert plain.max() == plain[1, 1, 8] == pytest.approx(800e3, rel=0.01)
    one, eight = (at(measured, "graph", threads=threads) for threads in (1, 8))
    assert (one[RATE], eight[RATE]) == (pytest.approx(454e3, rel=0.01), pytest.approx(465e3, rel=0.01))
    assert all(overlap(one, at(measured, "graph", threads=threads), RATE) for threads in (2, 4, 8))


def test_more_streams_of_a_thread_lengthen_the_round_trip_alone(measured):
    for form in ("plain", "graph", "pdl"):
        one = at(measured, form)
        for streams in (2, 4, 8, 16):
            more = at(measured, form, streams=streams)
            assert all(overlap(one, more, column) for column in (RATE, CALL, "call_p99")), (form, streams)
            longer = more[ROUND_TRIP] > one[ROUND_TRIP] and not overlap(one, more, ROUND_TRIP)
            assert longer == (streams > 2 or form == "pdl"), (form, streams)


def test_pdl_beside_plain(measured):
    clear = []
    for kernels in (1, 4, 16, 64, 256):
        plain, pdl = (at(measured, form, kernels) for form in ("plain", "pdl"))
        shorter, more = 1 - pdl[ROUND_TRIP] / plain[ROUND_TRIP], pdl[RATE] / plain[RATE]
        assert f"\n| {kernels} | {shorter:.0%} shorter | {more:.2f} times".replace("%", " %") in PAGE
        clear += [(kernels, column) for column in (ROUND_TRIP, RATE) if not overlap(plain, pdl, column)]
    assert clear == [(64, RATE)]
    plain, pdl = (at(measured, form, streams=2)[ROUND_TRIP] for form in ("plain", "pdl"))
    assert pdl / plain == pytest.approx(1.06, abs=0.005)
    plain, pdl = (at(measured, form, threads=8) for form in ("plain", "pdl"))
    assert all(pdl[column] == pytest.approx(plain[column], rel=0.01) for column in (RATE, ROUND_TRIP))
