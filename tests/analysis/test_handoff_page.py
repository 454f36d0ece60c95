"""What the page of `handoff` says in words, of the rows that its tables are made of: a sentence that new rows do not bear
out must be written anew."""

import json
from statistics import median

import pandas as pd
import pytest
from conftest import ROOT

from analysis.handoff import cheapest, points
from analysis.load import load

FOLDER = ROOT / "results/reference/h200/handoff"
KI, MI, GI = 1 << 10, 1 << 20, 1 << 30
MAPPED = ("ipc_vmm", "ipc_pool", "ipc_legacy", "store")


@pytest.fixture(scope="module")
def results():
    return load([str(FOLDER)], experiment="handoff")


@pytest.fixture(scope="module")
def measured(results) -> pd.DataFrame:
    """One tensor and one reader, on the giver's GPU."""
    found = points.read(results)
    return found[(found["tensors"] == 1) & (found["readers"] == 1)]


def at(measured: pd.DataFrame, column: str, **setting) -> dict[str, float]:
    for axis, value in setting.items():
        measured = measured[measured[axis] == value]
    assert len(measured)
    return dict(zip(measured["way"], measured[column]))


def test_what_is_mapped_costs_nothing_whatever_its_size(measured):
    for size in (KI, MI, GI):
        starts = at(measured, points.START, bytes=size, use="cached")
        assert all(9.5e3 < starts[way] < 14.1e3 for way in MAPPED), starts
    largest = at(measured, points.TIME, bytes=GI, use="cached")
    assert largest["shm_pinned"] / min(largest[way] for way in MAPPED) == pytest.approx(81, abs=0.5)
    assert "redis_value" not in largest


def test_small_tensors_wait_for_the_gpu_to_change_contexts(results, measured):
    times, starts = (at(measured, column, bytes=KI, use="cached") for column in (points.TIME, points.START))
    for way in ("ipc_vmm", "ipc_legacy", "store"):
        assert times[way] == pytest.approx(152e3, rel=0.01)
        assert starts[way] == pytest.approx(10e3, rel=0.05) and times[way] - starts[way] == pytest.approx(142e3, abs=1e3)
    assert times["shm_pinned"] == pytest.approx(1.05 * times["ipc_vmm"], rel=0.02)
    (least, *_) = cheapest.places(results, "other")
    assert least.best["bytes"] == 64 * KI and least.best[points.TIME] == pytest.approx(16e3, rel=0.02)


def ratio(measured: pd.DataFrame, column: str, way: str, other: str, **setting) -> float:
    some = at(measured, column, **setting)
    return some[way] / some[other]


def test_what_the_store_costs_beside_ipc_legacy(measured):
    beside = ("store", "ipc_legacy")
    for size in (KI, 16 * KI, 256 * KI, MI, 4 * MI, 64 * MI, GI):
        assert ratio(measured, points.TIME, *beside, bytes=size, use="cached") == pytest.approx(1, abs=0.02)
        lows, highs = (at(measured, f"{points.TIME}_{end}", bytes=size, use="cached") for end in ("low", "high"))
        assert lows["store"] < highs["ipc_legacy"] and lows["ipc_legacy"] < highs["store"]
    for size in (KI, 16 * KI, 256 * KI, MI, 4 * MI):
        assert ratio(measured, points.TIME, *beside, bytes=size, use="first") < 1
    times = at(measured, points.TIME, bytes=64 * MI, use="first")
    assert (times["store"], times["ipc_legacy"]) == (pytest.approx(325e3, rel=0.002), pytest.approx(246e3, rel=0.002))
    assert ratio(measured, points.TIME, *beside, bytes=64 * MI, use="first") == pytest.approx(1.3, abs=0.05)
    for size, times_as_long, store, legacy in ((64 * MI, 2.1, 0.70e6, 0.34e6), (GI, 1.9, 2.86e6, 1.50e6)):
        created = at(measured, "create_p50", bytes=size, use="first")
        assert created["store"] == pytest.approx(store, rel=0.01) and created["ipc_legacy"] == pytest.approx(legacy, rel=0.01)
        assert created["store"] / created["ipc_legacy"] == pytest.approx(times_as_long, abs=0.05)
        lows, highs = (at(measured, f"create_p50_{end}", bytes=size, use="first") for end in ("low", "high"))
        assert highs["ipc_legacy"] < lows["store"]


def test_the_store_is_the_cheapest_for_new_tensors_up_to_4_mib(measured):
    for size in (KI, 16 * KI, 256 * KI, MI, 4 * MI):
        lows, highs = (at(measured, f"{points.TIME}_{end}", bytes=size, use="first") for end in ("low", "high"))
        assert all(lows["store"] < high for high in highs.values())
    lows, highs = (at(measured, f"{points.TIME}_{end}", bytes=64 * MI, use="first") for end in ("low", "high"))
    assert highs["ipc_legacy"] < lows["store"]
    times = at(measured, points.TIME, bytes=64 * MI, use="first")
    assert times["ipc_vmm"] == pytest.approx(275e3, rel=0.002) and times["ipc_vmm"] < times["store"]
    lows, highs = (at(measured, f"{points.TIME}_{end}", bytes=GI, use="first") for end in ("low", "high"))
    alike = [way for way in MAPPED if way != "ipc_pool"]
    assert all(lows[one] < highs[other] for one in alike for other in alike)
    assert all(highs[way] < lows["ipc_pool"] for way in alike)
    times = at(measured, points.TIME, bytes=GI, use="first")
    assert all(0.80e6 < times[way] < 0.83e6 for way in alike) and times["ipc_pool"] == pytest.approx(2.71e6, rel=0.002)


def test_what_it_takes_to_create_and_to_delete(measured):
    created, deleted = (at(measured, column, bytes=MI, use="first") for column in ("create_p50", "delete_p50"))
    some = {way: created[way] for way in MAPPED}
    assert min(some, key=some.get) == "store" and some["store"] == pytest.approx(174e3, rel=0.005)
    assert max(some, key=some.get) == "ipc_pool" and some["ipc_pool"] == pytest.approx(282e3, rel=0.005)
    slower = [deleted[way] / deleted["store"] for way in MAPPED if way != "store"]
    assert min(slower) == pytest.approx(2.7, abs=0.05) and max(slower) == pytest.approx(3.1, abs=0.05)


def test_to_another_gpu_large_tensors_are_copied_first(results):
    reach = {place.best["bytes"]: place.best["reach"] for place in cheapest.places(results, "other")}
    assert reach[64 * KI] == reach[4 * MI] == "map"
    found = points.read(results, "other")
    for size, way in ((size, way) for size in (64 * MI, GI) for way in ("ipc_vmm", "ipc_legacy")):
        some = found[(found["bytes"] == size) & (found["way"] == way)].set_index("reach")[points.TIME]
        assert some["copy"] == pytest.approx(some["map"], rel=0.02)
    some = found[(found["bytes"] == 4 * MI) & (found["way"] == "ipc_vmm")].set_index("reach")
    assert some[f"{points.TIME}_high"]["map"] < some[f"{points.TIME}_low"]["copy"]


def test_several_tensors_and_readers(results):
    found = points.read(results)
    some = found[(found["use"] == "cached") & (found["readers"] == 1) & (found["tensors"] == 16)].set_index("way")[points.RATE]
    for way in ("ipc_vmm", "store"):
        assert some[way] == pytest.approx(5 * some["shm_pinned"], rel=0.1)
    some = found[(found["tensors"] == 1) & (found["bytes"] == 4 * MI) & (found["use"] == "cached")]
    for way in ("ipc_vmm", "store"):
        one, two, four = (some[(some["way"] == way) & (some["readers"] == n)][points.TIME].iloc[0] for n in (1, 2, 4))
        assert two == pytest.approx(2 * one, rel=0.1) and four == pytest.approx(4 * one, rel=0.1)


def test_beside_pytorch():
    some: dict[tuple, list[float]] = {}
    for line in map(json.loads, (FOLDER / "torch_shared.jsonl").read_text().splitlines()):
        for figure in ("handoff_ns", "to_start_ns"):
            some.setdefault((figure, line["way"], line["use"], line["bytes"]), []).append(line[figure])
    told = {where: median(values) for where, values in some.items()}
    for size in (KI, MI):
        for way in ("ipc_legacy", "store"):
            first = told["to_start_ns", "torch_shared", "first", size] / told["to_start_ns", way, "first", size]
            assert 5.75 < first < 10.45
            known = told["to_start_ns", "torch_shared", "cached", size] - told["to_start_ns", way, "cached", size]
            assert 46.5e3 < known < 50.5e3
    for size in (64 * MI, GI):
        assert told["handoff_ns", "torch_shared", "first", size] < told["handoff_ns", "store", "first", size]
        assert told["to_start_ns", "torch_shared", "first", size] > told["to_start_ns", "store", "first", size]
    torch, own = (told["handoff_ns", way, "cached", GI] for way in ("torch_shared", "ipc_legacy"))
    assert torch < own
